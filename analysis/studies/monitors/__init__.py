"""What monitors and profilers cost: by the saved runs of our own study, and by the logs of others."""
