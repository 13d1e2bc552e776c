"""Typed callees of functions as evidence of their resource: the device APIs that they reach, and their own labels.

    called = called_by(found, functions)      from the typed calls of an index (indexer.typed, indexer.pytyped)
    rows = called.features(labels)            (n, FEATURES), from the labels of all functions

A model adds the rows, times its weights, to the logits of its heads (indexer.classify).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexer.typed import Known, Meaning
from crystalperf.indexes.apis import device_api
from crystalperf.indexes.resources import resources

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]

FAR = 3
"""Maximum number of calls from a function to a device API."""

MAX_WAYS = 8
"""Maximum targets of a call that count; if there are more, only the first one, the declared function, does."""

MAX_CALLEES = 40
"""Maximum callees of a function that count: the first ones."""

DEVICES = ("disk", "net")

OF_LABELS = (
    *("largest disk", "largest net", "mean disk", "mean net", "namesake disk", "namesake net"),
    *("calls a disk API", "calls a net API", "callees", "outside", "unknown", "nothing is known"),
)
"""Features from the probabilities of a function's callees; a namesake is a callee of the same name, or the only one."""

OF_DISTANCES = (
    *(f"{device} API {far} away" for device in DEVICES for far in range(1, FAR + 1)),
    *("no API near", "no typed call"),
)
"""Features from the distances to device APIs, in calls."""

FEATURES = (*OF_LABELS, *OF_DISTANCES)

NO_DEVICE, OTHERS = "no device in callees", "callees of other packages"
"""Reasons for a label other than a callee in the index or a device API."""

_MANY = np.float32(np.log(20))


@dataclass(frozen=True)
class Callees:
    """The typed callees of a function, each once, in order of appearance."""

    devices: tuple[str, ...] = ()
    """Resources of the device APIs that the function calls directly."""
    functions: tuple[int, ...] = ()
    """Functions of the same source, by number."""
    outside: int = 0
    """Number of methods of other packages that are not device APIs."""
    unknown: int = 0


def callees_of(meanings: Iterable[Meaning]) -> Callees:
    """The meanings of one function's calls together."""
    devices: list[str] = []
    functions: dict[int, None] = {}
    outside: set[tuple[str, str]] = set()
    unknown: set[tuple[str, str]] = set()
    for each in meanings:
        api = device_api(each.owner, each.name) if each.status in ("function", "functions", "outside") else None
        if api is not None:
            devices.append(api.resource)
        elif each.targets:
            functions |= dict.fromkeys(each.targets[:1] if len(each.targets) > MAX_WAYS else each.targets)
        elif each.status == "outside":
            outside.add((each.owner, each.name))
        elif each.status in ("unknown", "nowhere", "no source"):
            unknown.add((each.owner, each.name))
    return Callees(tuple(devices), tuple(functions)[:MAX_CALLEES], len(outside), len(unknown))


def callees_by_caller(found: Iterable[tuple[int, Meaning]], functions: Sequence[Known]) -> dict[int, Callees]:
    """The callees of each function with typed calls; those of a lambda also count for the enclosing function."""
    meanings: dict[int, list[Meaning]] = defaultdict(list)
    for caller, meaning in found:
        at: int | None = caller
        while at is not None:
            meanings[at].append(meaning)
            at = functions[at].enclosing if functions[at].kind == "lambda" else None
    return {caller: callees_of(its) for caller, its in meanings.items()}


def called_by(found: Iterable[tuple[int, Meaning]], functions: Sequence[Known]) -> Called:
    """The typed callees of all functions of an index."""
    return Called.of(callees_by_caller(found, functions), [each.name for each in functions])


@dataclass(frozen=True)
class Called:
    """The typed callees of n functions, in m pairs of caller and callee, each once.

    Attributes:
        callers, callees: (m,) functions, by number.
        namesakes: (m,) whether both have the same simple name.
        nearest: (n, 2) calls to the nearest API of each of DEVICES; 0 if none is within FAR calls.
        outside, unknown: (n,) methods of other packages, and of unknown types.
        typed: (n,) whether any call of the function has a type.
    """

    callers: Numbers
    callees: Numbers
    namesakes: NDArray[np.bool_]
    nearest: Numbers
    outside: Numbers
    unknown: Numbers
    typed: NDArray[np.bool_]

    @staticmethod
    def of(callees: Mapping[int, Callees], names: Sequence[str]) -> Called:
        """The callees of functions with these simple names, by number."""
        pairs = [(caller, each) for caller, its in callees.items() for each in its.functions if each != caller]
        callers, called = np.array(pairs, np.int64).reshape(-1, 2).T
        outside, unknown = np.zeros((2, len(names)), np.int64)
        typed = np.zeros(len(names), bool)
        direct = np.zeros((len(names), len(DEVICES)), bool)
        for caller, its in callees.items():
            typed[caller], outside[caller], unknown[caller] = True, its.outside, its.unknown
            direct[caller] = [device in its.devices for device in DEVICES]
        namesakes = np.array([names[caller] == names[each] for caller, each in pairs], bool)
        return Called(callers, called, namesakes, _nearest(direct, callers, called), outside, unknown, typed)

    def features(self, labels: Floats) -> Floats:
        """(n, FEATURES) of the functions, from the (n, k) probabilities of all of them."""
        return np.concatenate([self._of_labels(labels), self._of_distances()], axis=1)

    def without(self) -> Called:
        """The same functions, as if no call of them had a type."""
        return Called.of({}, [""] * len(self.typed))

    def deciders(self, labels: Floats, decided: Mapping[int, str]) -> dict[int, int | str]:
        """The reasons for labels of functions, by number: a callee, by number; `disk API` or `net API` for one that is
        called directly; NO_DEVICE; or OTHERS.  `labels` are the (n, k) probabilities of all functions."""
        order = np.argsort(self.callers, kind="stable")
        callers, callees = self.callers[order], self.callees[order]
        found: dict[int, int | str] = {}
        for row, label in decided.items():
            start, end = np.searchsorted(callers, [row, row + 1])
            its = callees[start:end]
            if label not in DEVICES:
                found[row] = NO_DEVICE
            elif self.nearest[row, DEVICES.index(label)] == 1:
                found[row] = f"{label} API"
            elif not len(its):
                found[row] = OTHERS
            else:
                found[row] = int(its[labels[its, resources().index(label)].argmax()])
        return found

    def _of_labels(self, labels: Floats) -> Floats:
        theirs = labels[self.callees][:, [resources().index(each) for each in DEVICES]]
        count = np.bincount(self.callers, minlength=len(self.typed))
        named = np.zeros(len(self.typed), bool)
        named[self.callers[self.namesakes]] = True
        alike = self.namesakes | ((count == 1) & ~named)[self.callers]
        largest, total, namesake = np.zeros((3, len(self.typed), len(DEVICES)), np.float32)
        np.maximum.at(largest, self.callers, theirs)
        np.add.at(total, self.callers, theirs)
        np.maximum.at(namesake, self.callers[alike], theirs[alike])
        direct = self.nearest == 1
        numbers = np.log1p(np.stack([count, self.outside, self.unknown], axis=1)) / _MANY
        nothing = ~((count > 0) | direct.any(axis=1) | (self.outside > 0))
        mean = total / np.maximum(count, 1)[:, None]
        found = np.concatenate([largest, mean, namesake, direct, numbers, nothing[:, None]], axis=1)
        return found.astype(np.float32)

    def _of_distances(self) -> Floats:
        far = [self.nearest[:, [device]] == np.arange(1, FAR + 1) for device in range(len(DEVICES))]
        none_near = self.typed & ~self.nearest.any(axis=1)
        return np.concatenate([*far, none_near[:, None], ~self.typed[:, None]], axis=1).astype(np.float32)


def _nearest(direct: NDArray[np.bool_], callers: Numbers, callees: Numbers) -> Numbers:
    """(n, 2) calls to the nearest API, 0 if there is none within FAR, from the APIs that functions call directly."""
    none = FAR + 1
    found = np.where(direct, 1, none)
    for _ in range(FAR - 1):
        below = found[callees] + 1
        found = found.copy()
        np.minimum.at(found, callers, below)
    return np.where(found < none, found, 0)
