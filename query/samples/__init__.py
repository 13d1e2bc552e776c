"""Recorded stacks as time on threads, on the log's clock, tied to the tasks that held the threads."""
