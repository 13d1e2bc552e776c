"""Real frameworks under controlled resources: what a user would have recorded, and what really happened."""
