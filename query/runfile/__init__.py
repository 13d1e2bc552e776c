"""The run file: the pipeline that makes it, the cache that stores it, and anonymized copies."""
