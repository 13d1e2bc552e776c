"""The trace that a framework's reader returns, its validation, and plain values that every package uses."""
