"""Fleets: tables of Parquet about many runs, one row a run, and queries over them."""
