"""Resolves the frames of a stack, and finds the function that the stack's time is attributed to."""
