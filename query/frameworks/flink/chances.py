"""What a user of Flink can change about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from query.explain.chances import Chance

if TYPE_CHECKING:
    from query.model.flow import Flow

SHORTER = 10.0
"""How much shorter a buffer's timeout is asked to be."""


def filling(flow: Flow, filling_ms: float) -> Chance:
    """A shorter timeout of buffers, at the price of more and smaller ones."""
    due = [each.due_ms for each in flow.hops if each.due_ms < 60_000]
    now = max(due, default=100.0)
    after = max(round(now / SHORTER), 1)
    return Chance(
        "setting",
        f"Send buffers sooner, `execution.buffer-timeout.interval` {now:.0f} → {after} ms: they are not full by then,"
        " and more of them cost more CPU",
        "execution.buffer-timeout.interval",
        "modelled",
        at_most_ms=filling_ms * (1 - after / now) if now > after else filling_ms,
        lines=(f"execution.buffer-timeout.interval: {after} ms",),
    )
