"""Assembles a program from recorded threads and streams: lanes, signals between them, and marked steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.ml.training import collectives
from crystalperf.query.frameworks.ml.training.collectives import Collective
from crystalperf.query.frameworks.ml.training.lanes import Lane, Signal, named_by_longest, segments
from crystalperf.query.frameworks.ml.training.program import Device, Exchange, Operation, Program, Step

MAX_LANES = 10_000
"""Maximum threads and streams of a trace: real ones have some hundred, and each becomes a stage."""


@dataclass
class Assembly:
    """Lanes under construction.

    `devices` are those with known properties beyond their lanes; they come first.
    """

    lanes: list[Lane] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)

    def join(self) -> list[Exchange]:
        """Begin each collective when the last process arrives, with a signal to it from each process's work before."""
        signals, exchanges = collectives.joined(self.collectives, self.lanes)
        self.signals += signals
        return exchanges

    def program(
        self,
        steps: Sequence[Step] = (),
        exchanges: Sequence[Exchange] = (),
        name: Callable[[Lane, Sequence[Operation]], str] = named_by_longest,
    ) -> Program:
        """The program, from its first segment or step to its last; `name` names a segment.

        Raises InputError for more than MAX_LANES.
        """
        if len(self.lanes) > MAX_LANES:
            raise InputError(f"the trace has more than {MAX_LANES} threads and streams; trace fewer processes")
        process = {lane.device: lane.process for lane in self.lanes}

        def step_at(device: str, moment_ms: float) -> Step | None:
            own = (each for each in steps if each.process in ("", process[device]))
            return next((each for each in own if each.start_ms <= moment_ms < each.end_ms), None)

        def scope_at(lane: Lane, moment_ms: float) -> str | None:
            found = step_at(lane.device, moment_ms)
            return None if found is None else found.scope_id

        def in_step(each: Exchange) -> Exchange:
            found = step_at(each.worker_id, each.began_ms)
            return each if found is None else replace(each, step=found.number)

        borders = sorted({each.start_ms for each in steps})
        cut = segments(self.lanes, self.signals, borders=borders, name=name, step=scope_at)
        spans = [*((each.start_ms, each.end_ms) for each in steps), *((each.start_ms, each.end_ms) for each in cut)]
        return Program(
            segments=cut,
            devices=self._devices(),
            steps=steps,
            start_ms=min((start for start, _ in spans), default=0.0),
            end_ms=max((end for _, end in spans), default=0.0),
            exchanges=[in_step(each) for each in exchanges],
        )

    def _devices(self) -> list[Device]:
        """Devices that ran something, each with the number of its lanes that did."""
        ran = [lane for lane in self.lanes if lane.operations]
        counts = Counter(lane.device for lane in ran)
        plain = {lane.device: Device(lane.device, lane.process) for lane in ran if lane.device not in self.devices}
        return [
            replace(each, lanes=counts[each.name])
            for each in (*self.devices.values(), *plain.values())
            if each.name in counts
        ]
