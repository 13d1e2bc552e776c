"""What findings, recommendations, refusals and assumptions have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Kind:
    """A value of one kind of a closed set.  `kind` is its key in JSON, the same in every version; subclasses set it."""

    kind: ClassVar[str]
