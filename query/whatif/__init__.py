"""The run replayed, as it was and in a changed world."""
