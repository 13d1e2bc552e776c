"""Events that nest on a thread: which of them was the innermost at each moment, and within which others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


class Lasting(Protocol):
    """What begins and ends, ms."""

    @property
    def start_ms(self) -> float: ...

    @property
    def end_ms(self) -> float: ...


Nested = TypeVar("Nested", bound=Lasting)


def innermost(
    events: Iterable[Nested], is_whole: Callable[[Nested], bool] = lambda _: False
) -> Iterator[tuple[tuple[Nested, ...], float, float]]:
    """(events around a stretch, the outermost first; its start; its end), in order; the last of them is the innermost.

    What is whole has none within it.
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
