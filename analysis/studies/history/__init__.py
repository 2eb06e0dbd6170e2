"""Many saved runs over time: series of one value per run, and their changes."""
