"""A scope of a run as arrays: tasks, slots, execution DAG, critical path, clock."""
