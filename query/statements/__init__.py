"""SQL statements of anybody over run files and indexes: each is answered by a process of its own, read-only."""
