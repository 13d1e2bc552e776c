"""Where the code has the terms that a performance engineer searches for.

    python -m tests.field_terms            each term, and one place of the code that has it in a name
    python -m tests.field_terms TERM…      all places of these terms

A name has a term if its words include the words of the term in order: `critical_path_ms` and `CriticalPath` have
"critical path".  A plural counts as its singular.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ("query", "indexes", "indexer", "crystalperf", "report", "service", "fleet", "cli")
REST = ("lab", "tests", "examples")
TERMS = (
    "baseline", "bottleneck", "bounds", "broadcast", "cache", "calibration", "collective", "confidence", "contention",
    "coverage", "critical path", "data locality", "dependency", "driver", "estimate", "event log", "executor",
    "fixed point", "flame graph", "garbage collection", "imputation", "interval", "kernel", "latency", "makespan",
    "memory pressure", "overhead", "pipeline", "prior", "queueing", "recommendation", "replay", "roofline", "scenario",
    "scheduler", "shuffle", "simulation", "skew", "slot", "spill", "stage", "straggler", "task", "throughput",
    "utilization", "warm-up", "wave", "what-if",
)  # fmt: skip
"""Terms of the field, each of which leads to the code about it; docs/glossary.md defines them."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a name or a term in lower case, without a plural's s."""
    return tuple(each.lower().removesuffix("s") for each in _WORD.findall(text))


@cache
def names(packages: tuple[str, ...] = CORE) -> dict[tuple[str, ...], list[str]]:
    """The words of each name in the Python code of packages, and the places that have it: file:line name."""
    found: dict[tuple[str, ...], list[str]] = {}
    for path in _files(packages):
        where = path.relative_to(ROOT)
        for part in where.with_suffix("").parts:
            found.setdefault(words_of(part), []).append(str(where))
        with io.BytesIO(path.read_bytes()) as text:
            for token in tokenize.tokenize(text.readline):
                if token.type == tokenize.NAME:
                    found.setdefault(words_of(token.string), []).append(f"{where}:{token.start[0]} {token.string}")
    return found


def places(term: str) -> list[str]:
    """The places whose names have a term."""
    wanted = words_of(term)
    size = len(wanted)
    return [
        place
        for words, where in names().items()
        if any(words[start : start + size] == wanted for start in range(len(words) - size + 1))
        for place in where
    ]


def _files(packages: tuple[str, ...]) -> Iterator[Path]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not any(each.is_symlink() for each in (path, *path.parents) if each != ROOT and ROOT in each.parents):
                yield path


if __name__ == "__main__":
    for term in sys.argv[1:] or TERMS:
        found = places(term)
        print(f"{term:20s} {found[0] if found else '-'}" if not sys.argv[1:] else "\n".join(found) or f"{term}: -")
