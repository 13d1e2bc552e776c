"""Fields that have another name, and words that are written otherwise, in one version than in another."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.same.tables import digest


@dataclass(frozen=True)
class Renames:
    """What a file of renames says (lab/reference/renames.toml).

    A name of a field is a part of its path, findings[]/rule; it holds wherever that part stands in a path, and for all
    fields below it.  The longest name decides.  A name of `removed` or `added` may begin with the kind of answer,
    analyze/exit.

    renamed  by kind of answer, or `all`: name before → name after
    values   by name after: value before → value after, an empty text for none
    removed  by name before: why it has gone
    added    by name after: why there is more
    prose    names after of fields that are sentences; a field of `figures` is none, although it is part of one
    free     names after of sentences that may name other stages than before
    """

    renamed: Mapping[str, Mapping[str, str]]
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
        """The renames that a file states."""
        text = {each: frozenset(stated.get("text", {}).get(each, ())) for each in ("prose", "figures", "free")}
        return cls(
            renamed=stated.get("renamed", {}),
            values=stated.get("values", {}),
            removed=stated.get("removed", {}),
            added=stated.get("added", {}),
            prose=text["prose"],
            figures=text["figures"],
            free=text["free"],
        )

    def after(self, kind: str, path: str) -> str:
        """What became of a path."""
        path, count = (path[:-1] + "[]", True) if path.endswith("#") else (path, False)
        names = {**self.renamed.get("all", {}), **self.renamed.get(kind, {})}
        known = longest(path, names)
        # Texts that became objects were the end of their path; what goes on below is of a version that has the objects.
        nested = known is not None and names[known].startswith(f"{known}/") and not path.endswith(known)
        if known is not None and not nested:
            path = f"/{path}/".replace(f"/{known}/", f"/{names[known]}/", 1)[1:-1]
        return path[: path.rindex("[]")] + "#" if count else path

    def value(self, path: str, value: Any) -> Any:
        """What became of a value at a path of after."""
        known = longest(path, self.values)
        return value if known is None or not isinstance(value, str) else self._worded[known].get(value, value) or None

    @cached_property
    def _worded(self) -> dict[str, dict[str, str]]:
        """By name, values after by value before, and the same of their digests."""
        return {
            name: {**words, **{digest([one]): digest([other]) if other else "" for one, other in words.items()}}
            for name, words in self.values.items()
        }

    def is_prose(self, path: str) -> bool:
        """Whether a path of after is that of sentences."""
        prose, figure = longest(path, self.prose) or "", longest(path, self.figures) or ""
        return len(prose) > len(figure)


def longest(path: str, names: Iterable[str]) -> str | None:
    """The longest of these names that stands in a path."""
    within = f"/{path.removesuffix('#') + '[]' if path.endswith('#') else path}/"
    return max((each for each in names if f"/{each}/" in within), key=len, default=None)
