"""Converts recorded stacks to time on threads, on the log's clock, and matches it to the tasks on these threads."""
