"""Converts recorded stacks to time on threads, on the log's clock, and matches it to the units on these threads."""
