"""What is inside runs, told in numbers and tables; no verdict on a tweak."""
