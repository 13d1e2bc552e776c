"""Experiments with real frameworks under controlled resources: recordings as a user has them, and the ground truth."""
