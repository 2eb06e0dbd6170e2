"""What `deeptweak tune` chose among settings, and what fresh blocks say of the choice."""
