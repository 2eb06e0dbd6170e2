"""Deciding what to set next, iteration by iteration: the words, the service that speaks with a run, and the simulated plant."""
