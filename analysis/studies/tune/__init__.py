"""What `deeptweak tune` chose among settings, and how the choice did in fresh blocks."""
