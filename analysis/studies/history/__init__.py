"""Many saved runs over time: series of one value a run, where they changed, and what is known of the changes."""
