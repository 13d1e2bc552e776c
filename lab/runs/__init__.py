"""Runs of real frameworks under limited resources: clusters, workloads with their data, and suites of runs."""
