"""The terminal: `crystalperf COMMAND`.

main.py declares the command line and keeps the exit code contract; it imports nothing that is slow, so that `--help`
and shell completion are quick.  What a command does is in a module of its own, imported when it runs.
"""
