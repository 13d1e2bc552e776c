"""What findings, recommendations, refusals and assumptions have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Basis = Literal["measured", "modelled", "guessed"]
"""How something is known.

measured      a time or a count of the log or of a recording
modelled      it follows from measured ones by an assumption that is named; what the index says of code is one
guessed       it fits what was seen, as other causes would
"""


@dataclass(frozen=True)
class Kind:
    """A value of one kind of a closed set.  `kind` is its key in JSON, the same in every version; subclasses set it."""

    kind: ClassVar[str]
