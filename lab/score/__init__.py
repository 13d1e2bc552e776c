"""Predictions and vectors against what really happened."""
