"""The console script: exit codes, and every error as one sentence.

    0    an answer on stdout, even if inconclusive: its first sentence and `conclusive` in JSON say so
    1    an argument is wrong, or no answer is possible: one sentence on stderr, stdout empty (with `--json` it has the
         error, or the bounds that `predict` can give)
    2    the command line cannot be parsed; nothing else exits with 2
    3    only `gate`: a budget is exceeded
    4    only `gate`: undecided, because a range is on both sides of a budget or a value is unknown
    130  interrupted; 143 after SIGTERM

cli/commands.py declares the commands.  This module imports little of the standard library, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence

from crystalperf.cli.kept_help import kept_help
from crystalperf.cli.output import write

FEWER_COLLECTIONS = 300_000
"""New objects between two garbage collections.  Importing the modules of a command creates 100 000, none garbage."""


_terminated_by: list[int] = []
"""The number of SIGTERM, once it arrived."""


def _terminate(number: int, _: object) -> None:
    """End as after an interrupt, which removes temporary files: `timeout` sends SIGTERM."""
    _terminated_by.append(number)
    raise KeyboardInterrupt


def main() -> None:
    """The console script."""
    signal.signal(signal.SIGTERM, _terminate)
    gc.set_threshold(FEWER_COLLECTIONS)
    if sys.stderr is None:  # closed by the caller; messages would go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end of the process
    if sys.stdout is None:
        _print_message(
            "standard output is closed, so the answer cannot be written; redirect it to a file or to /dev/null"
        )
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal shows the code of a character that it cannot encode
            reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    gc.freeze()  # the process ends: a last garbage collection would take 5 % of an analysis
    sys.exit(128 + _terminated_by[0] if _terminated_by else code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are printed on stderr."""
    arguments, traceback = _without_traceback(arguments)
    arguments = _repeated(arguments, "gate", "--baseline")
    try:
        if (text := kept_help(arguments)) is not None:
            write(text)
            return 0
        from crystalperf.cli.parsing import command

        code = command(arguments).main(args=arguments, prog_name="crystalperf", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if (
            str(error) == "Query interrupted" or type(error).__name__ == "Abort"
        ):  # after an interrupt: DuckDB's, typer's
            return 130
        if traceback:
            import traceback as printer

            printer.print_exception(error)
        return _explain(error, arguments)


def _without_traceback(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without `--traceback`, and whether it was there; after `--` it is an ordinary argument."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [each for each in arguments[:end] if each != "--traceback"]
    return [*options, *arguments[end:]], len(options) < end


def _repeated(arguments: Sequence[str], command: str, option: str) -> list[str]:
    """The arguments of a command with an option before each of its values: a shell expands `--baseline old/*` to one
    option and several values, of which the parser would take the first only."""
    if arguments[:1] != [command]:
        return list(arguments)
    found, taking, values = list[str](), False, 0
    for number, each in enumerate(arguments):
        if each == "--":
            return [*found, *arguments[number:]]
        if each.startswith("-") and each != "-":
            taking, values = each == option, 0
        elif taking:
            values += 1
            found += [option] if values > 1 else []
        found.append(each)
    return found


def _explain(error: Exception, arguments: Sequence[str]) -> int:
    """Print an error as one sentence and return its exit code."""
    usage = getattr(error, "format_message", None)
    if usage is not None:  # typer's own: the command line cannot be parsed
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "crystalperf"
        _print_message(f"{usage().rstrip('.')}; see '{path} --help'")
        return 2
    sentence = _sentence(error, arguments)
    _print_message(sentence)
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    if "--json" in arguments[:end]:
        _write_failure(error, sentence)
    return 1


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    """The error as one sentence: the problem, the place and the fix."""
    from crystalperf.indexes.errors import CrystalPerfError

    if isinstance(error, CrystalPerfError):
        from crystalperf.cli.remedies import error_sentence

        return error_sentence(error)
    if isinstance(error, MemoryError):
        return "not enough memory; use a smaller part of the input, or a machine with more memory"
    if os.strerror(errno.ENOSPC) in str(error):  # DuckDB has no error class for it
        return "the disk is full; free space in the folder of run files and indexes, or choose another path with -o"
    import shlex

    what = " ".join(str(error).split()) or "no message"
    return (
        f"a bug of CrystalPerf ({type(error).__name__}: {what}); please report it with what"
        f" `crystalperf --traceback {shlex.join(arguments)}` prints"
    )


def _write_failure(error: Exception, sentence: str) -> None:
    """Write the error as JSON to stdout, where scripts expect the answer."""
    from contextlib import suppress

    from crystalperf.cli.output import write_answer
    from crystalperf.indexes.errors import CrystalPerfError
    from crystalperf.query.results.answers import Failure

    failure = Failure(str(error), error.remedy) if isinstance(error, CrystalPerfError) else Failure(sentence)
    with suppress(CrystalPerfError):  # stdout may be the cause of the error
        write_answer(failure)


def _print_message(message: str) -> None:
    from crystalperf.cli.output import print_message

    print_message(f"crystalperf: {message}")


if __name__ == "__main__":
    main()
