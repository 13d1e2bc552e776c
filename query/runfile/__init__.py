"""The run file: the pipeline that makes it, where it is kept, and copies without names."""
