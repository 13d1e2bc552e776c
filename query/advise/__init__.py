"""The verdict on a run, what to do about it, and on which machines."""
