"""What each arm measured in absolute numbers, what it changes, and the tables of both."""
