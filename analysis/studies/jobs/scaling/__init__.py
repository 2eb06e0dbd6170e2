"""How many replicas a job gets: laws of speed-up, fitted to measured times, and the number that makes jobs of any size equally long."""
