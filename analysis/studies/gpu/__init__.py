"""What the metrics of a GPU say of a kernel whose size is known: a grid of blocks × threads, its logs or its saved run."""
