"""A run as values to compute on: its tables, its execution DAG, its worlds."""
