"""Keep a device below a cap: models, searches, algorithms, and a simulated device for tests."""
