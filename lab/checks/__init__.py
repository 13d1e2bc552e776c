"""Checks of CrystalPerf with real logs, recordings and frameworks: its answers, and what it misses."""
