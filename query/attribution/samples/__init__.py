"""Recorded stacks as time on threads, on the log's clock, tied to the units that held the threads."""
