"""Running a command of the command line, and judging its result."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crystalperf.cli.main import run as type_command

CODES = {"analyze": (0, 1, 4), "debug": (0, 1, 4)}
"""Allowed exit codes of commands; (0, 1) for all others."""


class ContradictionError(Exception):
    """Tables that no run can have, or an answer that breaks its contract."""


def typed(home: Path, *command: Any) -> str | None:
    """Run a command with a cache in `home`; returns the sentence of a refusal, None for an answer.

    Raises ContradictionError for a result that breaks the contract, and exceptions that the command did not catch.
    """
    arguments = [str(each) for each in command]
    out, err = StringIO(), StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ, CRYSTALPERF_HOME=str(home)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", RuntimeWarning)  # numpy's warnings: a user would see lines of code
        code = type_command(arguments)
    return judged(arguments, code, out.getvalue(), err.getvalue())


def judged(arguments: Sequence[str], code: int, answer: str, message: str) -> str | None:
    """The sentence of a refusal, None for an answer; raises ContradictionError for anything else."""
    whole = " ".join(arguments)
    if code not in CODES.get(arguments[0], (0, 1)) or "bug of CrystalPerf" in message or "Traceback" in message:
        raise ContradictionError(f"{whole} ended with {code}: {message}")
    as_json = "--json" in arguments
    if as_json:
        schema = json.loads(answer)["schema"]
        if schema == "crystalperf.error/2" and code != 1:
            raise ContradictionError(f"{whole} ended with {code}, and answered with {schema}")
    if code == 1:
        if answer and not as_json:
            raise ContradictionError(f"{whole} failed, but printed an answer: {answer[:200]}")
        reported = message.strip().rpartition("\n")[2] if arguments[0] in ("debug", "predict") else message
        return one_sentence(reported)
    if not answer.strip():
        raise ContradictionError(f"{whole} ended with {code} without a message")
    if any(ord(each) < 32 and each != "\n" for each in answer):
        raise ContradictionError(f"{whole} printed a control character")
    return None


def one_sentence(text: str) -> str:
    """The text of an error; raises ContradictionError unless it is one sentence."""
    if not text.strip() or "\n" in text.strip():
        raise ContradictionError(f"an error is not one sentence: {text!r}")
    return text
