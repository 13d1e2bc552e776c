"""Measurements of the cost of CrystalPerf's commands and recorders."""
