"""What was asked of the search for a partition, what more power buys, and the page that says so."""
