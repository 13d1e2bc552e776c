"""The command line: `crystalperf COMMAND`.

entry.py is the entry point, main.py implements the exit codes, commands.py and index_app.py declare commands, arguments
and options.  They import nothing slow, so that `--help` and shell completion are quick.  Each command is implemented in
another module, which is imported when the command runs.
"""
