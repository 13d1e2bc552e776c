"""The query service: runs and indexes over HTTP; its answers are those of the terminal."""
