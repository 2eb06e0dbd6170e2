"""Power-capped inference: what partition, batches and clock give and take, what is best under a cap, and who holds the cap best."""
