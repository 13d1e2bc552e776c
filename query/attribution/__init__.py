"""Recorded stacks to code and resources, and each unit's time split by resource."""
