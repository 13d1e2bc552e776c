"""Device APIs: calls during which a thread waits for a device.  They come from device_apis.toml, with its fields."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from crystalperf.indexes.frozen import frozen


@frozen
class Api:
    """An entry of device_apis.toml; an empty list of methods means all methods."""

    resource: str
    why: str
    classes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    methods: frozenset[str] = frozenset()


@cache
def device_apis() -> tuple[Api, ...]:
    """All entries, in the order of the file."""
    rows = tomllib.loads(files("crystalperf.indexes").joinpath("device_apis.toml").read_text(encoding="utf-8"))["api"]
    return tuple(
        Api(
            row["resource"],
            row["why"],
            tuple(row.get("classes", ())),
            tuple(row.get("packages", ())),
            frozenset(row.get("methods", ())),
        )
        for row in rows
    )


def device_api(class_name: str, method: str) -> Api | None:
    """The device API that a method of a class is, by qualified or binary name; None for any other.

    >>> device_api("java.net.Socket$SocketInputStream", "read").resource
    'net'
    """
    name = place = class_name.replace("$", ".")
    while place:
        for api in _by_place().get(place, ()):
            if (not api.methods or method in api.methods) and (place == name or _holds_classes(api, place)):
                return api
        place = place.rpartition(".")[0]
    return None


def _holds_classes(api: Api, place: str) -> bool:
    """Whether the entry includes classes below a place: Python's module `io` does not include io.netty.channel."""
    return place in api.packages or place.rpartition(".")[2][:1].isupper()


@cache
def _by_place() -> Mapping[str, tuple[Api, ...]]:
    """Entries by the classes and packages that they name."""
    found: dict[str, tuple[Api, ...]] = {}
    for api in device_apis():
        for place in (*api.classes, *api.packages):
            found[place] = (*found.get(place, ()), api)
    return found
