"""What runs under a power cap say: who holds the cap, what each algorithm gets out of it, and how far the model's word was good."""
