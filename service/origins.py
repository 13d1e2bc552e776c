"""The servers that hand out logs and that this service may ask: those that it was given at the start.

An address of a client is never asked as it came.  What lies below a server that was given is put behind
that server's own words, so that no other reading of an address leads anywhere else; redirects stay on that server.
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
    """A server as it is given at the start, without a slash at its end.  Raises SettingError."""
    found = _parts(text)
    if found is None or found.query or found.fragment:
        raise SettingError(f"{text}: the address of a server is expected, such as http://HOST:18080")
    return text.rstrip("/")


def below(origins: Sequence[str], text: str) -> str:
    """The address of something below one of the servers.  Raises ProblemError."""
    if not origins:
        raise ProblemError(403, "this service asks no other server: start it with --history URL, or upload the log")
    found = _parts(text)
    for each in origins:
        given = _parts(each)
        if found is None or given is None or _server(found) != _server(given):
            continue
        path = found.path.removeprefix(given.path.rstrip("/"))
        if found.path.startswith(given.path.rstrip("/")) and path[:1] in ("", "/"):
            return each + path  # without what a browser has after `?` or `#`
    raise ProblemError(403, f"{text[:200]}: is not below a server that this service may ask: {', '.join(origins)}")


def _parts(text: str) -> SplitResult | None:
    """The parts of a plain address; None for one that could be read in two ways, or that names a user."""
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
