"""The trace that a framework's reader returns, its validation, and basic values that every package uses."""
