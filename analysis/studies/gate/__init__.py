"""The gate: may a candidate be merged? The ruling, its limits, and all the forms in which it is told."""
