"""What keeps a device below a cap: models of it, searches over them, algorithms; and a simulated device for them to be tried on."""
