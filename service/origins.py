"""The log servers that this service may contact: those configured at the start.

The service never requests a client's address as given.  It appends the part below a configured server to that server's
configured URL, so that no ambiguous address leads elsewhere; redirects stay on that server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from crystalperf.indexes.errors import SettingError
from crystalperf.service.problems import ProblemError

_PORTS = {"http": 80, "https": 443}
_PATH = re.compile(r"(?:/[A-Za-z0-9_.~-]*)*")


def origin(text: str) -> str:
    """The URL of a configured server, without a trailing slash.  Raises SettingError."""
    found = _parts(text)
    if found is None or found.query or found.fragment:
        raise SettingError(f"{text}: expected the address of a server, such as http://HOST:18080")
    return text.rstrip("/")


def below(origins: Sequence[str], text: str) -> str:
    """The URL of a path below one of the servers.  Raises ProblemError."""
    if not origins:
        raise ProblemError(403, "this service may not contact a server; start it with --history URL, or upload the log")
    found = _parts(text)
    for each in origins:
        given = _parts(each)
        if found is None or given is None or _server(found) != _server(given):
            continue
        path = found.path.removeprefix(given.path.rstrip("/"))
        if found.path.startswith(given.path.rstrip("/")) and path[:1] in ("", "/"):
            return each + path  # without query string and fragment
    raise ProblemError(403, f"{text[:200]}: not below a server that this service may contact: {', '.join(origins)}")


def _parts(text: str) -> SplitResult | None:
    """The parts of a plain URL; None if it is ambiguous or has credentials."""
    if not text.isascii() or not text.isprintable() or any(each in text for each in " \\@"):
        return None
    try:
        found = urlsplit(text)
        port = found.port
    except ValueError:
        return None
    plain = _PATH.fullmatch(found.path) is not None and not {".", ".."} & set(found.path.split("/"))
    return found if plain and found.scheme in _PORTS and found.hostname and port != 0 else None


def _server(found: SplitResult) -> tuple[str, str | None, int]:
    return found.scheme, found.hostname, found.port or _PORTS[found.scheme]
