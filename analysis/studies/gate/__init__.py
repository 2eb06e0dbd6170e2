"""The gate: may a candidate be merged? Rulings, limits, and all output formats."""
