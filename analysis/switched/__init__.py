"""Settings alternated inside one process (`--design=switch`): its segments as units, and whether a switch outlasts the settle steps."""
