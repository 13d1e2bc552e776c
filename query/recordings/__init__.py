"""Readers of recorded stacks, one package or module a format."""
