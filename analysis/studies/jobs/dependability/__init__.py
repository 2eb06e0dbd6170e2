"""What faults cost: recovery, lost work, goodput, checkpoints, packet loss and poisoned clients, out of saved runs."""
