"""Runs users' SQL statements over run files and indexes, each in its own process, read-only."""
