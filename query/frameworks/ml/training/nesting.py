"""Nested events of a thread: the innermost at each moment, and those around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


class Lasting(Protocol):
    """An event with start and end, ms."""

    @property
    def start_ms(self) -> float: ...

    @property
    def end_ms(self) -> float: ...


Nested = TypeVar("Nested", bound=Lasting)


def innermost(
    events: Iterable[Nested], is_whole: Callable[[Nested], bool] = lambda _: False
) -> Iterator[tuple[tuple[Nested, ...], float, float]]:
    """(events around an interval, the outermost first; its start; its end), in order; the last event is the innermost.

    A whole event contains no others.
    """
    around: list[Nested] = []
    now = float("-inf")
    for each in sorted(events, key=lambda one: (one.start_ms, -one.end_ms)):
        while around and around[-1].end_ms <= each.start_ms:
            if around[-1].end_ms > now:
                yield tuple(around), now, around[-1].end_ms
                now = around[-1].end_ms
            around.pop()
        if around and is_whole(around[-1]):
            continue
        if around and each.start_ms > now:
            yield tuple(around), now, each.start_ms
        now = max(now, each.start_ms)
        around.append(each)
    while around:
        if around[-1].end_ms > now:
            yield tuple(around), now, around[-1].end_ms
            now = around[-1].end_ms
        around.pop()
