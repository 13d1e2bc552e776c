"""Streams: where the time of a record goes, and what a scenario changes about it."""
