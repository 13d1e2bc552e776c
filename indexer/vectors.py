"""The interface between building an index and the models: a classifier's input and output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexer.evidence import Called

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The input of a classifier for one function."""

    code: str
    """The code; '' for a module that only declares functions and classes."""
    doc: str
    """The documentation; '' if there is none."""
    language: str
    qualified_name: str
    class_name: str | None
    package: str
    callees: tuple[str, ...]
    """Simple names of callees, in order of appearance, each once."""


@dataclass(frozen=True)
class Vectors:
    """Resource vectors of n functions over k resources, in the order they were given; rows sum to 1."""

    code: Floats
    """(n, k) by the code classifier; NaN rows where it was not run."""
    doc: Floats
    """(n, k) by the documentation classifier; NaN rows without documentation."""
    combined: Floats
    """(n, k), no NaN."""
    confidence: Floats
    """(n,), calibrated probability that the largest of `combined` is the dominant resource."""
    deciders: Mapping[int, int | str] = field(default_factory=dict)
    """For functions, by number, whose typed callees gave them another label than their own text: what decided it, as
    of Called.deciders()."""


Compute = Callable[[Sequence[FunctionText]], Floats]
"""n functions → (n, d); each row depends only on its function."""

Remember = Callable[[Sequence[FunctionText], Compute], Floats]
"""The result of `compute`, cached per function."""


class Classifier(Protocol):
    """A model of functions' resources.  `identity` goes into the index: name, hash and settings of the model."""

    @property
    def resources(self) -> tuple[str, ...]: ...

    @property
    def identity(self) -> Mapping[str, str]: ...

    def judge(self, functions: Sequence[FunctionText]) -> Floats:
        """(n, d) what the model computes of each function alone; it is cached."""
        ...

    def vectors(self, judged: Floats, called: Callable[[], Called] | None = None) -> Vectors:
        """The vectors of judged functions; `called` finds the typed callees among them, if the model reads these."""
        ...
