"""The marks of stacks that CrystalPerf itself exported: the resource as the leaf frame.

If they are read again, the leaf is not part of the stack: it would decide the thread's state and the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.resources import resources, with_other


def resource_frame(name: str) -> str:
    """The leaf frame of a stack whose time is on a resource."""
    return f"[{name}]"


_LEAVES = frozenset(resource_frame(name) for name in with_other(tuple(resources())))


def is_resource_frame(text: str) -> bool:
    """Whether a leaf frame is the resource of an exported stack."""
    return text in _LEAVES


def without_resource(texts: Sequence[str]) -> tuple[Sequence[str], bool]:
    """A stack, the root first, without the resource at its leaf; whether it had one."""
    if len(texts) > 1 and is_resource_frame(texts[-1]):
        return texts[:-1], True
    return texts, False
