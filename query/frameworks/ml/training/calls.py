"""C functions that a Python program calls: the device through which each of them blocks its thread."""

from __future__ import annotations

from functools import cache

from crystalperf.indexes.apis import device_api

_OF_DESCRIPTORS = frozenset([("posix", "read"), ("posix", "write")])
"""A descriptor may be a pipe's, which is not on a disk."""


@cache
def device_of(owner: str, name: str) -> str | None:
    """The resource that a module's function, or a type's method, uses while it blocks its thread; None for any other.

    >>> device_of("_io.BufferedReader", "read")
    'disk'
    """
    api = None if (owner, name) in _OF_DESCRIPTORS else device_api(owner, name)
    return None if api is None else api.resource
