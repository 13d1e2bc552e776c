"""Many runs at once: one row a run, tables of Parquet, and the questions to them."""
