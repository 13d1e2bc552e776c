"""The base of findings, recommendations, refusals and assumptions."""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen

Basis = Literal["measured", "modelled", "guessed"]
"""The basis of a figure: how it is known.

measured      a time or a count of the log or of a recording
modelled      it follows from measured ones by a named assumption; an index's label of code is one
guessed       it is consistent with the observations, but other causes would be, too
"""

Price = Literal["code", "setting", "machine", "inspect", "record"]
"""The effort of a change, the cheapest first.

code      an edit of the program
setting   a value of the configuration
machine   more machines, cores or memory, or other machines
inspect   somebody who finds the cause first: nothing says yet what to change
record    one more recording
"""


@frozen
class Kind:
    """A value of one kind of a closed set.  Subclasses set `kind`, its key in JSON, the same in every version."""

    kind: ClassVar[str]
