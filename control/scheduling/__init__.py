"""Which waiting job is next: policies, and the scheduler that they work in. The simulator and the real dispatcher run this very code."""
