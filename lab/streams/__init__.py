"""Streaming queries of Spark (Structured Streaming): real runs under varied rates, triggers and partitions, scored."""
