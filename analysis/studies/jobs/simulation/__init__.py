"""A cluster that is not there: streams of jobs, slots and policies played in simulated time, the same jobs for every policy."""
