"""Spark's event log, in three steps: lines to typed events, events to what they say of the run, that to tables."""
