"""DS2: an operator can process its records per second of useful time, and the slowest one for its share of the records
limits the sources.

    true rate = records / useful time        highest rate = min over operators of rate × slots' / (slots × useful share)

DS2 solves this for the slots that a target rate needs; here the slots are given.  Waiting is not useful time.
"""

from __future__ import annotations

from collections.abc import Callable

from crystalperf.plugin import (
    Execution,
    Predictor,
    RefusedError,
    Scenario,
    Station,
    Stream,
    SustainedRate,
    UsefulTimeUnknown,
    tasks_of,
)

SETTINGS = ("tasks", "tasks.", "cpu_speed")
"""The settings with a term: slots of all operators or of one, and their speed."""


def highest_rate(
    stream: Stream, factor: Callable[[Station], float], busy: Callable[[Station], float]
) -> tuple[float, str] | None:
    """The highest rate of the sources, records per second, and the id of the operator that limits it.

    `factor` is that on an operator's slots and their speed, and `busy` the share of time in which it was useful.  None
    if no operator has one.
    """
    rates = [
        (stream.rate_per_s * factor(each) / busy(each), each.id)
        for each in stream.stations
        if busy(each) > 0 and each.records_per_s > 0
    ]
    return min(rates, default=None) if stream.rate_per_s > 0 else None


def rate_of(name: str, execution: Execution, scenario: Scenario, busy: Callable[[Station], float]) -> SustainedRate:
    """The highest rate in a scenario.  Raises RefusedError."""
    assert execution.stream is not None

    def factor(station: Station) -> float:
        return tasks_of(scenario, station.id, station.name) * scenario.ratio("cpu_speed")

    found = highest_rate(execution.stream, factor, busy)
    if found is None:
        raise RefusedError(UsefulTimeUnknown(name))
    return SustainedRate(*found)


DS2 = Predictor(
    lambda execution, scenario: rate_of("ds2", execution, scenario, lambda each: each.busy),
    source="Kalavri et al., Three steps is all you need, OSDI 2018, section 3",
    runs=frozenset(("stream",)),
    settings=lambda _run: SETTINGS,
)
