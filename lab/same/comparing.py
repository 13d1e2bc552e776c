"""Differences between two collections of answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.same.renames import Renames, longest
from lab.same.tables import Column, is_number, kept_table, named, without_words

CLOSE = 1e-9
"""Tolerance for the relative difference of two numbers."""
_ROUNDED = {"share": 1.5e-4, "shares": 1.5e-4, "ratio": 1.5e-6, "ratios": 1.5e-6}
"""By the last word of a field: the largest difference from rounding in JSON."""
_ROUNDED_TIME = 1.5e-3
_SHORT = 160
_SERVED = {"verdict": "analyze", "debug": "debug", "predict": "predict", "sweep": "predict", "rows": "sql"}

FIGURES, ENTRIES, FIELDS, SENTENCES = "figures and words", "numbers of entries", "fields of one side", "sentences"
_LISTS = (FIGURES, ENTRIES, FIELDS, SENTENCES)


@dataclass
class Differences:
    """Differences between two versions: the count and the first place, by list and field."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in _LISTS})
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    compared: int = 0

    def add(self, which: str, path: str, where: str, what: str) -> None:
        """One difference."""
        self.counts[which][path] += 1
        self.first.setdefault((which, path), f"{where}: {what}")

    def lines(self) -> Iterator[str]:
        """The lists."""
        for which, found in self.counts.items():
            yield f"{which}: {found.total()} differ"
            for path, count in found.most_common():
                yield f"  {path}: {count} times, first in {self.first[which, path]}"
        yield f"{self.compared} columns were compared"

    def __bool__(self) -> bool:
        return any(self.counts.values())


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], renames: Renames, *, text: bool = False
) -> Differences:
    """Differences between the answers of two versions, without inputs that only `before` has."""
    found = Differences()
    for name, asked in after.items():
        if name not in before:
            found.add(FIELDS, "(input)", name, "is not in the first collection")
            continue
        pairs = (
            {renames.requests.get(each, each): table for each, table in before[name]["answers"].items()},
            asked["answers"],
        )
        for question in dict.fromkeys((*pairs[0], *pairs[1])):
            kind = kind_of(name, question)
            old, new = (each.get(question) for each in pairs)
            if old is None or new is None:
                known = longest(f"{kind} {question}", renames.added if old is None else renames.removed)
                if known is None:
                    side = "before" if new is None else "after"
                    found.add(FIELDS, f"({kind})", f"{name}: {question}", f"only {side}")
                continue
            new = renames.as_before(new)
            if before[name].get("kept") and not asked.get("kept"):
                new = kept_table(new, asked["public"])
            _Tables(f"{name}: {question}", kind, renames, text, found).compare(old, new)
    return found


def kind_of(name: str, question: str) -> str:
    """The kind of an answer: analyze, debug, predict, sql, fleet …"""
    first, _, second = question.partition(" ")
    if name == "service":
        return _SERVED.get(first, "service")
    if first == "python":
        return {"verdict": "analyze", "sweep": "predict"}.get(second, second)
    return "fleet" if name == "fleet" else first


@dataclass(frozen=True)
class _Tables:
    """Two answers to the same request, as tables."""

    where: str
    kind: str
    renames: Renames
    text: bool
    found: Differences

    def compare(self, before: Mapping[str, Column], after: Mapping[str, Column]) -> None:
        """Find the differences."""
        old = {self.renames.after(self.kind, path): (path, column) for path, column in before.items()}
        for path in dict.fromkeys((*old, *after)):
            if path not in after:
                was, column = old[path]
                if longest(f"{self.kind}/{was}", self.renames.removed) is None and not _is_nothing(column):
                    self._add(FIELDS, path, f"only before, {_short(column)}")
            elif path not in old:
                if longest(f"{self.kind}/{path}", self.renames.added) is None and not _is_nothing(after[path]):
                    self._add(FIELDS, path, f"only after, {_short(after[path])}")
            else:
                self._columns(path, old[path][1], after[path])

    def _columns(self, path: str, old: Column, new: Column) -> None:
        self.found.compared += 1
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            self._sums(path, old, new)
        elif len(old) != len(new):
            self._add(ENTRIES, path, f"{len(old)} before, {len(new)} after")
        elif path.endswith("#"):
            if [each or 0 for each in old] != [each or 0 for each in new]:
                self._add(ENTRIES, path, f"{_short(old)} before, {_short(new)} after")
        elif self.renames.is_prose(path):
            self._sentences(path, old, new)
        else:
            for place, (one, other) in enumerate(zip(old, new, strict=True)):
                if not _same(path, self.renames.value(path, one), other):
                    self._add(FIGURES, path, f"[{place}] {_short(one)} before, {_short(other)} after")

    def _sums(self, path: str, old: Column, new: Column) -> None:
        """Compare columns that are stored as sums or as a digest."""
        if self.renames.is_prose(path) and not self.text and "sum" not in old and "sum" not in new:
            return
        if isinstance(old, Mapping) and isinstance(new, Mapping) and set(old) == set(new):
            room = max(1.0, float(old.get("count", 1)) ** 0.5)
            if all(_same(path, old[each], new[each], room) for each in old):
                return
        which = SENTENCES if self.renames.is_prose(path) else FIGURES
        self._add(which, path, f"{_short(old)} before, {_short(new)} after")

    def _sentences(self, path: str, old: Sequence[Any], new: Sequence[Any]) -> None:
        """Compare sentences: their presence, the order of common ones and, with --text, the words."""
        pairs = list(zip(old, new, strict=True))
        for place, (one, other) in enumerate(pairs):
            if not isinstance(one, str | None) or not isinstance(other, str | None):
                if not _same(path, one, other):
                    self._add(FIGURES, path, f"[{place}] {_short(one)} before, {_short(other)} after")
            elif bool(one) != bool(other):
                self._add(ENTRIES, path, f"[{place}] {_short(one)} before, {_short(other)} after")
            elif one and other and named(one) != named(other) and longest(path, self.renames.free) is None:
                self._add(FIGURES, f"{path}, what is named", f"[{place}] {named(one)} before, {named(other)} after")
            elif one != other and self.text:
                masked = _without_numbers(one) == _without_numbers(other)
                self._add(
                    SENTENCES,
                    f"{path}, in their numbers" if masked else path,
                    f"[{place}]\n    before: {one}\n    after:  {other}",
                )
        both = {each for each in old if each} & {each for each in new if each}
        orders = [list(dict.fromkeys(each for each in side if each in both)) for side in (old, new)]
        if orders[0] != orders[1]:
            self._add(ENTRIES, path, f"in the order {_short(orders[0])} before, {_short(orders[1])} after")

    def _add(self, which: str, path: str, what: str) -> None:
        self.found.add(which, f"{self.kind} {path}", self.where, what)


def _same(path: str, one: Any, other: Any, room: float = 1.0) -> bool:
    if is_number(one) and is_number(other):
        return bool(abs(one - other) <= max(_rounding(path) * room, CLOSE * max(abs(one), abs(other))))
    both = ((one, other), (other, one))
    return bool(one == other or any(isinstance(a, str) and without_words(a) == b for a, b in both))


def _is_nothing(column: Column) -> bool:
    return not isinstance(column, Mapping) and all(each is None for each in column)


def _rounding(path: str) -> float:
    """The largest difference that the rounding of a field can cause."""
    words = (each.replace("[]", "").rpartition("_")[2] for each in path.split("/"))
    return next((_ROUNDED[word] for word in words if word in _ROUNDED), _ROUNDED_TIME)


def _without_numbers(text: Any) -> str:
    return re.sub(r"\d[\d.,]*", "0", str(text))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"
