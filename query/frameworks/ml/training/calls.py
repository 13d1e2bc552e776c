"""Functions of C that a program in Python calls: which of them hand its thread to a device."""

from __future__ import annotations

from functools import cache

from crystalperf.indexes.apis import device_api

_OF_DESCRIPTORS = frozenset([("posix", "read"), ("posix", "write")])
"""A descriptor may be a pipe's, which is no disk's."""


@cache
def device_of(owner: str, name: str) -> str | None:
    """The resource that a function of a module, or a method of a type, hands its thread to; None of any other.

    >>> device_of("_io.BufferedReader", "read")
    'disk'
    """
    api = None if (owner, name) in _OF_DESCRIPTORS else device_api(owner, name)
    return None if api is None else api.resource
