"""Each task's time, split by resource and by operator."""
