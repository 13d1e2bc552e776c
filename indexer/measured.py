"""Functions whose resource was measured: the shares of their time in real calls, instead of a model's estimate.

The measurements are those of docs/dataset.md (indexer/labels/measured.tsv).  No model learns from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from crystalperf.indexer.labels.functions import text_hash
from crystalperf.indexer.labels.tables import Measured, committed, read_table
from crystalperf.indexer.records import Function
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.resources import resources

_Key = tuple[str, str]
"""A function's last two names, such as `JSONDecoder.decode`, and the hash of its text."""


def measured_shares(functions: Sequence[Function]) -> dict[int, Floats]:
    """(k,) measured shares of functions, by number; they sum to 1.

    A function has them if its text and its class are those of the measured one, in any version of its library.
    """
    known = measured_table()
    names = {name for name, _ in known}
    found = {}
    for number, each in enumerate(functions):
        name = _short(each.qualified_name)
        if name in names and (shares := known.get((name, text_hash([each.code])))) is not None:
            found[number] = shares
    return found


def _short(qualified_name: str) -> str:
    return ".".join(qualified_name.split(".")[-2:])


@cache
def measured_table() -> dict[_Key, Floats]:
    """The measured shares.  Functions that mostly waited for other threads have none: no resource was measured."""
    rows = [each for each in read_table(committed("measured"), Measured) if each.label in resources()]
    return {(_short(each.qualified_name), each.text_hash): _shares(each) for each in rows}


def _shares(each: Measured) -> Floats:
    shares = np.array([getattr(each, resource) for resource in resources()], np.float32)
    return np.asarray(shares / shares.sum(), np.float32)
