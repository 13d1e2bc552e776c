"""Replay of an execution in another scenario, and the effects of a scenario."""
