"""Spark's event log, in three steps: lines to typed events, events to a collected run, that to tables."""
