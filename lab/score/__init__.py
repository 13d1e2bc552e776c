"""Scores of predictions and resource breakdowns against ground truth."""
