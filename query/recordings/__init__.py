"""Readers of recorded stacks, one package or module per format."""
