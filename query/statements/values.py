"""Encodes DuckDB's values in JSON and decodes them, so that values from the child process keep their types.

Types that JSON has are unchanged; all others become an object of one key, the name of the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID


def sent(value: Any) -> Any:
    """A value encoded as JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [sent(each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [sent(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[sent(key), sent(each)] for key, each in value.items()]}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, datetime | date | time):  # a datetime is a date too
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return {type(value).__name__: str(value)} if isinstance(value, Decimal | UUID) else str(value)


_MADE: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": lambda found: tuple(received(each) for each in found),
    "dict": lambda found: {received(key): received(each) for key, each in found},
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda found: timedelta(*found),
    "Decimal": Decimal,
    "UUID": UUID,
}


def received(value: Any) -> Any:
    """The decoded value, the inverse of sent()."""
    if isinstance(value, list):
        return [received(each) for each in value]
    if isinstance(value, dict):
        ((what, found),) = value.items()
        return _MADE[what](found)
    return value
