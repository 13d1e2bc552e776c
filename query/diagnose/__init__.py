"""Where the time of a scope went, and what cost it."""
