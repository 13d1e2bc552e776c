"""`python -m crystalperf`: the command, if its script is not on the PATH."""

from crystalperf.cli.entry import main

if __name__ == "__main__":
    main()
