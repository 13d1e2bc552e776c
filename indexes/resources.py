"""Resources (resources.toml): the columns of a time breakdown, the settings of their speed, their bandwidth."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal

from crystalperf.indexes.frozen import frozen

CPU, DISK, NET = "cpu", "disk", "net"
"""The resources that every run has and that thread samples distinguish."""

OTHER = "other"
"""Time on none of the resources, or unknown."""


@frozen
class Resource:
    """One resource, as resources.toml describes it."""

    name: str
    device: str
    setting: str
    unit: Literal["speed", "bytes per second"]
    shared_by: Literal["worker", "host", "nobody"] = "nobody"
    buffer_bytes: float | None = None
    overhead_ms: float | None = None
    rate_bps: float | None = None
    moves: tuple[str, ...] = ()
    """Columns of `tasks` whose bytes cross the device."""


@cache
def known() -> tuple[Resource, ...]:
    """The resources of resources.toml, in the order of a resource vector."""
    rows = tomllib.loads(files("crystalperf.indexes").joinpath("resources.toml").read_text(encoding="utf-8"))
    return tuple(Resource(name, **{**row, "moves": tuple(row.get("moves", ()))}) for name, row in rows.items())


def resources() -> tuple[str, ...]:
    """Names of the resources that every run has and every index is built for: ('cpu', 'disk', 'net')."""
    return tuple(each.name for each in known())


def with_other(names: Iterable[str]) -> tuple[str, ...]:
    """The columns of a time breakdown: the resources and `other`."""
    return (*names, OTHER)
