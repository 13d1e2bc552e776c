"""Escaping of untrusted texts for a page, and JSON inside HTML.

Names in logs may be anything: markup, characters that reverse the text direction, a megabyte of text.  The page shows
them literally, on one line, and cut to LONGEST_TEXT.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crystalperf.query.text.figures import cut_right, printable

LONGEST_TEXT = 1_000
"""Maximum characters of a text on a page."""

_NO_MARKUP = {ord(each): f"\\u{ord(each):04x}" for each in "<>&'\u2028\u2029"}
"""In JSON these occur inside strings only, where the escape is equivalent; so HTML parsers see no tag or comment."""


def harmless(value: Any) -> Any:
    """The same JSON with every text escaped by shown(); long lists of numbers are not visited."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(key): harmless(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return value if value and isinstance(value[0], int | float) else [harmless(each) for each in value]
    return value


def shown(text: str) -> str:
    """A text on one line, cut if too long; control and direction characters become their code points."""
    return printable(cut_right(text, LONGEST_TEXT))


def script_data(value: Any) -> str:
    """JSON as the content of a script element with data."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_NO_MARKUP)
