"""Resource limits on one Linux machine, and the ground truth of a run from /proc."""
