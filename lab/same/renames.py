"""Renamed fields and changed values between two versions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.same.tables import Table, digest


@dataclass(frozen=True)
class Renames:
    """The content of a file of renames (lab/reference/renames.toml).

    A field's name is a part of its path, such as findings[]/rule; it applies wherever a path contains that part, and to
    all fields below it.  The longest name wins.  A name in `removed` or `added` may begin with the kind of answer, such
    as analyze/exit.

    renamed  by kind of answer, or `all`: old name → new name
    parts    old → new part of a path, wherever it is in a path; applied after `renamed`
    requests old → new request, such as "sql group_resources"
    prefixes old → new start of an identifier, such as "stretch:"
    values   by new name: old value → new value, an empty text for a missing value
    removed  by old name: the reason
    added    by new name: the reason
    prose    new names of fields with sentences, except those in `figures`
    free     new names of sentences that may name other stages than before
    """

    renamed: Mapping[str, Mapping[str, str]]
    parts: Mapping[str, str]
    requests: Mapping[str, str]
    prefixes: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]]
    removed: Mapping[str, str]
    added: Mapping[str, str]
    prose: frozenset[str]
    figures: frozenset[str]
    free: frozenset[str]

    @classmethod
    def read(cls, file: Path) -> Renames:
        """The renames of a file."""
        return cls.of(tomllib.loads(file.read_text(encoding="utf-8")))

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> Renames:
        """The renames in a file."""
        text = {each: frozenset(stated.get("text", {}).get(each, ())) for each in ("prose", "figures", "free")}
        return cls(
            renamed=stated.get("renamed", {}),
            parts=stated.get("parts", {}),
            requests=stated.get("requests", {}),
            prefixes=stated.get("prefixes", {}),
            values=stated.get("values", {}),
            removed=stated.get("removed", {}),
            added=stated.get("added", {}),
            prose=text["prose"],
            figures=text["figures"],
            free=text["free"],
        )

    def after(self, kind: str, path: str) -> str:
        """The new name of a path."""
        path, count = (path[:-1] + "[]", True) if path.endswith("#") else (path, False)
        names = {**self.renamed.get("all", {}), **self.renamed.get(kind, {})}
        known = longest(path, names)
        # A text that became an object was a leaf; a longer path is of a version that already has the object.
        nested = known is not None and names[known].startswith(f"{known}/") and not path.endswith(known)
        if known is not None and not nested:
            path = f"/{path}/".replace(f"/{known}/", f"/{names[known]}/", 1)[1:-1]
        path = "/".join(map(self._part, path.split("/")))
        return path[: path.rindex("[]")] + "#" if count else path

    def as_before(self, table: Table) -> Table:
        """A new table with the old starts of identifiers, because digests of texts cannot be renamed."""
        if not self.prefixes:
            return table
        return {
            path: column if isinstance(column, Mapping) else [self._before(each) for each in column]
            for path, column in table.items()
        }

    def _before(self, value: Any) -> Any:
        if isinstance(value, str):
            for old, new in self.prefixes.items():
                if value.startswith(new):
                    return old + value.removeprefix(new)
        return value

    def _part(self, part: str) -> str:
        name = part.rstrip("[]")
        return self.parts.get(name, name) + part[len(name) :]

    def value(self, path: str, value: Any) -> Any:
        """The new value of an old value, at a new path."""
        known = longest(path, self.values)
        return value if known is None or not isinstance(value, str) else self._worded[known].get(value, value) or None

    @cached_property
    def _worded(self) -> dict[str, dict[str, str]]:
        """By name, new values by old values, and the same for their digests."""
        return {
            name: {**words, **{digest([one]): digest([other]) if other else "" for one, other in words.items()}}
            for name, words in self.values.items()
        }

    def is_prose(self, path: str) -> bool:
        """Whether a new path has sentences."""
        prose, figure = longest(path, self.prose) or "", longest(path, self.figures) or ""
        return len(prose) > len(figure)


def longest(path: str, names: Iterable[str]) -> str | None:
    """The longest of these names that a path contains."""
    within = f"/{path.removesuffix('#') + '[]' if path.endswith('#') else path}/"
    return max((each for each in names if f"/{each}/" in within), key=len, default=None)
