"""Runs of Spark with Comet, which runs operators in native code: each job with and without it."""
