"""A scope of a run as arrays: units, slots, execution DAG, critical path, clock."""
