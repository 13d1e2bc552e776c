"""Predictions: estimate, limits, interval, priors, and what reruns of a job show."""
