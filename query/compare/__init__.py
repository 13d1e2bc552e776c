"""Runs of a job against each other: whether a difference is noise, and where it comes from."""
