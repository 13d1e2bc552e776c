"""Exchanges between the vertices of a job: channels, records and buffers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import duckdb

from crystalperf.query.execution.stream import BUFFER_BYTES, Hop
from crystalperf.query.frameworks.flink.steady import Subtasks, summed
from crystalperf.query.frameworks.flink.timeout import TIMEOUT_MS


def edges_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """(source, target, strategy) of each edge, with Flink's names of strategies."""
    return connection.execute("SELECT source, target, why FROM dependencies ORDER BY rowid").fetchall()


def ordered(stages: list[str], edges: list[tuple[str, str]]) -> list[str]:
    """Stages in topological order."""
    order: list[str] = []
    left = list(stages)
    while left:
        ready = [
            each for each in left if all(source in order or source not in left for source, to in edges if to == each)
        ]
        order += ready or left[:1]
        left = [each for each in left if each not in order]
    return order


def hops_of(edges: list[tuple[str, str, str]], found: Subtasks) -> tuple[Hop, ...]:
    """The hops between vertices; several edges between the same two, as of a self-join, are one hop."""
    whys: dict[tuple[str, str], list[str]] = {}
    for source, target, why in edges:
        whys.setdefault((source, target), []).append(why.upper())
    slots = {stage: len(subtasks) for stage, subtasks in found.items()}
    channels = {
        (source, target): sum(_channels(why, slots[source], slots[target]) for why in strategies)
        for (source, target), strategies in whys.items()
    }
    parts = _parts(whys, found)
    hops = []
    for (source, target), strategies in whys.items():
        gives, takes, part = found[source], found[target], parts[source, target]
        local, far = summed(takes, "bytes_in_local"), summed(takes, "bytes_in_remote")
        remote = far / (local + far) if local + far > 0 else 0.0
        # Buffers of channels on one machine are counted at both ends.
        out = sum(count for (one, _), count in channels.items() if one == source)
        made = summed(gives, "output_buffers") * channels[source, target] / out
        buffers = _buffers(
            (source, target), {each: channels[each] for each in channels if each[1] == target}, parts, takes
        )
        every = summed(takes, "buffers_in_local", "buffers_in_remote")
        waiting = summed(takes, "input_buffers") * (buffers / every if every > 0 else part)
        hops.append(
            Hop(
                source=source,
                target=target,
                channels=channels[source, target],
                records_per_s=part * summed(takes, "records_in"),
                bytes_per_s=part * (local + far),
                buffers_per_s=buffers,
                remote=remote,
                queued=max(made - channels[source, target], 0.0) + max(waiting - (1 - remote) * made, 0.0),
                all_to_all=not all(why in _POINTWISE for why in strategies),
                kept=_kept(target, whys, found),
                silent=channels[source, target] - sum(_channels(why, *_active(gives, takes)) for why in strategies),
            )
        )
    return tuple(hops)


_POINTWISE = ("FORWARD", "RESCALE")
"""Strategies by which a subtask sends to few of the next ones; each subtask on the wider side has one channel."""


def _channels(why: str, gives: int, takes: int) -> int:
    return max(gives, takes) if why in _POINTWISE else gives * takes


def _active(gives: list[dict[str, float]], takes: list[dict[str, float]]) -> tuple[int, int]:
    """How many subtasks sent records, and how many received some; all if none did."""
    sent, received = (
        sum(each[name] > 0 for each in some) for some, name in ((gives, "records_out"), (takes, "records_in"))
    )
    return sent or len(gives), received or len(takes)


def _buffers(
    hop: tuple[str, str],
    channels: Mapping[tuple[str, str], int],
    parts: Mapping[tuple[str, str], float],
    takes: list[dict[str, float]],
) -> float:
    """Buffers per second that arrive over one hop into a vertex; `channels` has the number of channels of all its hops.

    Full buffers are in proportion to the hop's bytes.  Flushed ones come equally often from each channel, with any
    number of records, unless they are empty: if records arrive at random, with x on average within the timeout,
    1 - exp(-x) of them have one.
    """
    every = summed(takes, "buffers_in_local", "buffers_in_remote")
    full = summed(takes, "bytes_in_local", "bytes_in_remote") / BUFFER_BYTES
    records = summed(takes, "records_in") * TIMEOUT_MS / 1e3
    due = {each: -count * math.expm1(-records * parts[each] / count) for each, count in channels.items()}
    share = due[hop] / sum(due.values()) if sum(due.values()) > 0 else parts[hop]
    return min(full, every) * parts[hop] + max(every - full, 0.0) * share


def _given(source: str, target: str, whys: Mapping[tuple[str, str], list[str]], found: Subtasks) -> float:
    """Records per second that a vertex sent to its readers; each subtask of the target gets all records of a
    broadcast."""
    copies = len(found[target]) if "BROADCAST" in whys[source, target] else 1
    return copies * summed(found[source], "records_out")


def _kept(target: str, whys: Mapping[tuple[str, str], list[str]], found: Subtasks) -> float:
    """The share of the records sent to a vertex that it read, at most 1.

    It is 1 if one of its sources sends to other vertices too, because how many it sent to this one is unknown.
    """
    into = [source for source, other in whys if other == target]
    if any(sum(source == each for each, _ in whys) > 1 for source in into):
        return 1.0
    given = sum(_given(source, target, whys, found) for source in into)
    return min(summed(found[target], "records_in") / given, 1.0) if given > 0 else 1.0


def _parts(whys: Mapping[tuple[str, str], list[str]], found: Subtasks) -> dict[tuple[str, str], float]:
    """By source and target, the share of the target's input that comes from this source.

    It follows what the sources send.  A source that sends to other vertices too, as with side outputs, gets the
    remainder of those that send to this target only.
    """
    readers = Counter(source for source, _ in whys)
    parts: dict[tuple[str, str], float] = {}
    for target in {target for _, target in whys}:
        into = [source for source, other in whys if other == target]
        given = {source: _given(source, target, whys, found) for source in into}
        several = [source for source in into if readers[source] > 1]
        alone, shared = (sum(given[source] for source in some) for some in (set(into) - set(several), several))
        if alone > 0 and shared > 0:
            left = max(summed(found[target], "records_in") - alone, 0.0)
            given |= {source: left * given[source] / shared for source in several}
        whole = sum(given.values())
        parts |= {(source, target): given[source] / whole if whole > 0 else 1 / len(into) for source in into}
    return parts
