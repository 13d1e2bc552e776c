"""Each unit's time, split by resource and by operator."""
