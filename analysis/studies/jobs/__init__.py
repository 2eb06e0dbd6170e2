"""Streams of jobs on a cluster: queues, schedulers, scaling, faults, and what each predicts."""
