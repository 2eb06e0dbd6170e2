"""Runs of streams of jobs, told and drawn: what queueing, scheduling and depending find in them, put together once."""
