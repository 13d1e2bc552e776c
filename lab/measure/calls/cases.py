"""What a case is: a function to measure, and a workload that calls it.

A workload prepares its data, yields None where the caches should be emptied, yields the call to measure, and cleans up.

Modules of cases switch some checks off.  Private functions are measured too, and the stubs leave them out (mypy).  Data
are bound as a default, so that making them is not measured (B008).  Some files stay open on purpose (SIM115).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Place:
    """What a workload works with: an empty folder on the disk, and the peers' address and ports."""

    folder: Path
    peer: str
    ports: dict[str, int]

    def address(self, name: str) -> tuple[str, int]:
        return self.peer, self.ports[name]

    def url(self, path: str = "bytes/200000") -> str:
        return f"http://{self.peer}:{self.ports['http']}/{path}"


Workload = Callable[[Place], Iterator[Any]]


class Cases(list[tuple[Any, Workload]]):
    """Functions measured, each with what calls it, in the order in which they are added."""

    def case(self, function: Any) -> Callable[[Workload], Workload]:
        def add(workload: Workload) -> Workload:
            self.append((function, workload))
            return workload

        return add

    def cpu(self, function: Any, call: Callable[[], Any], times: int = 1) -> None:
        """A call that needs no device, made so many times."""

        def workload(_: Place) -> Iterator[Any]:
            yield lambda: [call() for _ in range(times)]

        self.append((function, workload))

    def disk(self, function: Any, make: Callable[[Path], Any], use: Callable[[Any], Any]) -> None:
        """A call on what `make` put into a folder, with empty caches."""

        def workload(place: Place) -> Iterator[Any]:
            made = make(place.folder)
            yield None
            yield lambda: use(made)

        self.append((function, workload))

    def opened(
        self, function: Any, make: Callable[[Path], Any], enter: Callable[[Any], Any], use: Callable[[Any], Any]
    ) -> None:
        """The same on what `enter` opens once the caches are empty; it is closed at the end."""

        def workload(place: Place) -> Iterator[Any]:
            made = make(place.folder)
            yield None
            with enter(made) as its:
                yield lambda: use(its)

        self.append((function, workload))

    def net(self, function: Any, connect: Callable[[Place], Any], use: Callable[[Any], Any]) -> None:
        """A call on a connection to a peer, which is closed at the end."""

        def workload(place: Place) -> Iterator[Any]:
            its = connect(place)
            yield lambda: use(its)
            for close in ("quit", "logout", "close"):
                if hasattr(its, close):
                    with contextlib.suppress(Exception):
                        getattr(its, close)()
                    break

        self.append((function, workload))


def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of every item."""
    return lambda items: [function(item) for item in items]


def times(count: int, use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same use, so many times."""
    return lambda its: [use(its) for _ in range(count)]


def folder_of(make: Callable[[Path], Any]) -> Callable[[Path], Path]:
    """Makes something in a folder, and gives the folder."""

    def made(folder: Path) -> Path:
        make(folder)
        return folder

    return made
