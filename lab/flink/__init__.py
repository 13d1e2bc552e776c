"""Real Flink under shaped resources: `python -m lab.flink`."""
