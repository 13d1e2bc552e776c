"""Texts of strangers' logs as a page may hold them, and JSON inside of HTML.

Names in logs may be anything: markup, characters that turn a line around, a megabyte.  They are shown as what they
are: in one line, steering nothing, and cut where nobody would read on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crystalperf.query.text.figures import cut_right, printable

LONGEST_TEXT = 1_000
"""Characters of a text that a page shows."""

_NO_MARKUP = {ord(each): f"\\u{ord(each):04x}" for each in "<>&'\u2028\u2029"}
"""In JSON these stand in strings alone, where the escape means the same; no HTML parser sees a tag or a comment."""


def harmless(value: Any) -> Any:
    """The same JSON with every text as a page may hold it; long lists of numbers are taken as they are."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(key): harmless(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return value if value and isinstance(value[0], int | float) else [harmless(each) for each in value]
    return value


def shown(text: str) -> str:
    """A text on one line, cut where it is too long; control and direction characters are shown by their numbers."""
    return printable(cut_right(text, LONGEST_TEXT))


def script_data(value: Any) -> str:
    """JSON as the content of a script element that is data."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_NO_MARKUP)
