"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST_S = 253_402_300_799  # the year 9999


def moment(unix_ms: float) -> str:
    """A time in UTC, ISO 8601.  Clocks of logs may be wrong, so it is clamped to valid dates."""
    return datetime.fromtimestamp(min(max(unix_ms / 1e3, 0), _LAST_S), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
