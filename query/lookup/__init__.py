"""Lookups in resource indexes: available indexes, functions, frames of stacks, and the evidence of a vector."""
