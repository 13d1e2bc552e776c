"""Pseudonyms: replaces names of people, machines and data by host-1, table-2, path-3.

One name has one pseudonym everywhere, so that answers stay consistent.  Pseudonyms themselves stay, so a second
replacement changes nothing.

    application   its name and its id
    host          names and addresses of machines
    user          owners of home folders, names after `user=…`, mail addresses
    path          locations of files; the scheme of a URL stays, because it shows their locality
    table         names of tables in statements and plans
    literals      values in statements and plans; they become …
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from crystalperf.indexes.regex import regex

Kind = Literal["application", "host", "user", "path", "table"]

LITERAL = "…"

_CALLED = regex(r"(?:application|host|user|path|table)-\d+")
_SHORTEST = 3
"""Minimum characters of a name to replace it in all texts; shorter ones are replaced only at known positions."""

_MAX_TIMES = 20
"""Maximum passes over a text; each one shortens it or finds new names."""

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_ENDS = r"[^\s'\"`,;()\[\]{}<>|…]"  # characters of a path
_URL = regex(rf"\b([A-Za-z][A-Za-z0-9+.-]{{0,20}}:/{{1,3}})({_ENDS}+)")
_PATH = regex(rf"(?<![\w/.…:-])(/{_ENDS}*\w{_ENDS}*)")
_DRIVE = regex(rf"(?<!\w)([A-Za-z]:\\{_ENDS}+)")
_LINE = regex(r"(?::\d+)+$")
_HOME = regex(r"/(?:home|Users|user)/([\w.-]+)")
_USER = regex(r"(?<![\w.])(user(?:[._-]?name)?\s?[=:]\s?)([\w.@-]+)", re.IGNORECASE)
_MAIL = regex(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = regex(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_HOST_PORT = regex(r"(?<![\w.$/-])([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+)(?=:\d{2,5}\b)")
_CODE = regex(r"\.(?:scala|java|py|kt|sql|r|cpp|cc|js|ts|go|rs)$")
_STATEMENT = regex(r"^\W*(?:select|insert|create|with|merge|update|delete|drop|alter|refresh|cache|analyze)\b", re.I)
_WORD = r"(?:`[^`]+`|\"[^\"]+\"|[\w$-]+)"
_TABLE = regex(
    r"\b(?:from|join|into|update|table|view|overwrite|database|schema|using)\s+(?:if\s+(?:not\s+)?exists\s+)?"
    rf"(?P<table>{_WORD}(?:\.{_WORD})*)",
    re.IGNORECASE,
)
_NO_TABLE = frozenset({"select", "values", "directory", "if", "lateral", "unnest", "the", "a"})
_QUOTED = regex(r"(?<![\w'\"…])(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")(?!\w)")
_NUMBER = r"(-?\d[\w.:+-]*)(?![\w#(])"
_COMPARED = regex(rf"((?:[<>]=?|!=|\s=)\s?){_NUMBER}")  # but not plan_id=334
_IN_STATEMENT = regex(rf"([<>=]\s?|\b(?:between|and|limit|like|in\s?\()\s?|,\s?){_NUMBER}", re.IGNORECASE)


class Pseudonyms:
    """Assigns pseudonyms, numbered in order of appearance; `patterns` are the framework's own (see Reader.private).

    A pattern's group `table` is the name of a table, its group `literal` a value.
    """

    def __init__(self, patterns: Iterable[re.Pattern[str]] = ()) -> None:
        self._patterns = tuple(patterns)
        self._called: dict[tuple[Kind, str], str] = {}
        self._counts: dict[Kind, int] = {}
        self._words: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None

    def called(self, kind: Kind, name: str) -> str:
        """The pseudonym of a name; from now on it replaces the name wherever it is a word of its own."""
        bare = name.strip()
        if not bare or _CALLED.fullmatch(bare) or (kind == "host" and bare.lower() in _LOCAL_NAMES):
            return name
        found = self._called.get((kind, bare))
        if found is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            found = self._called[kind, bare] = f"{kind}-{number}"
            if len(bare) >= _SHORTEST and bare not in self._words:
                self._words[bare] = found
                self._known = None
        return found

    def also(self, other: str, called: str) -> None:
        """Add another name for a pseudonym, such as the last part of a path."""
        if len(other) >= _SHORTEST and other not in self._words and not _CALLED.fullmatch(other):
            self._words[other] = called
            self._known = None

    def meet(self, text: str) -> None:
        """Collect the names in a text.  Call it for all texts before any is replaced."""
        for user in _HOME.findall(text):
            self.called("user", user)
        self.text(text)

    def text(self, text: str, *, literals: bool = True) -> str:
        """A text of a log with pseudonyms for names and … for literals; without `literals` these stay.

        After one replacement a quoted text may contain another one, so passes repeat until nothing changes.
        """
        for _ in range(_MAX_TIMES):
            before, text = text, self._once(text, literals)
            if text == before:
                break
        return text

    def _once(self, text: str, literals: bool) -> str:
        text = _URL.sub(lambda match: match[1] + self._path(match[2]), text)
        text = _DRIVE.sub(lambda match: self._path(match[1]), text)
        text = _PATH.sub(lambda match: self._path(match[1]), text)
        text = _MAIL.sub(lambda match: self.called("user", match[0]), text)
        text = _USER.sub(lambda match: match[1] + self.called("user", match[2]), text)
        for pattern in self._patterns:
            text = pattern.sub(self._replaced, text)
        is_statement = _STATEMENT.match(text) is not None
        if is_statement:
            text = _TABLE.sub(self._replaced, text)
        text = self._replace_known(text)
        text = _ADDRESS.sub(lambda match: self.called("host", match[0]), text)
        text = _HOST_PORT.sub(self._host, text)
        if not literals:
            return text
        text = _QUOTED.sub(lambda match: f"{match[0][0]}{LITERAL}{match[0][0]}", text)
        return (_IN_STATEMENT if is_statement else _COMPARED).sub(lambda match: match[1] + LITERAL, text)

    def _path(self, path: str) -> str:
        """The pseudonym of a path; the line number after it stays."""
        line = _LINE.search(path)
        bare = path[: line.start()] if line else path
        bare, rest = bare.rstrip(".:"), bare[len(bare.rstrip(".:")) :]
        called, last = self.called("path", bare), re.split(r"[/\\]", bare)[-1]
        if "." in last[1:] and called != bare:
            self.also(last, called)
        return f"{called}{rest}{line[0] if line else ''}"

    def _host(self, match: re.Match[str]) -> str:
        return match[0] if _CODE.search(match[1]) else self.called("host", match[1])

    def _replaced(self, match: re.Match[str]) -> str:
        """A match of a framework's pattern with a pseudonym for its table, or … for its literal."""
        found = match.groupdict()
        for group, by in (("literal", lambda _text: LITERAL), ("table", self._table)):
            if found.get(group):
                first, last = match.span(group)
                whole, start = match[0], match.start()
                return whole[: first - start] + by(match[group]) + whole[last - start :]
        return match[0]

    def _table(self, name: str) -> str:
        return name if name.lower() in _NO_TABLE or LITERAL in name else self.called("table", name)

    def _replace_known(self, text: str) -> str:
        if self._known is None:
            longest_first = sorted(self._words, key=lambda word: (-len(word), word))
            words = "|".join(re.escape(word) for word in longest_first)
            self._known = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])" if words else r"(?!)")
        return self._known.sub(lambda match: self._words[match[0]], text)
