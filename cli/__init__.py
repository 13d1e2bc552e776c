"""The terminal: `crystalperf COMMAND`.

entry.py is where the console script begins, main.py keeps the exit code contract, commands.py and index_app.py declare
what can be typed; they import nothing that is slow, so that `--help` and shell completion are quick.  What a command
does is in a module of its own, imported when it runs.
"""
