"""Which waiting job is started next, and where: policies, and what keeps the queue for them, in simulation and for a real dispatcher."""
