"""Fleets: Parquet tables about many runs, with one row per run, and queries over them."""
