"""Scheduling policies and a scheduler, shared by the simulator and the real dispatcher."""
