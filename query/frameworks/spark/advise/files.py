"""Recommendations on files: the size of file partitions, and jobs that only read a schema."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.scenario import SPLIT
from crystalperf.query.frameworks.spark.advise.changes import changed_size
from crystalperf.query.frameworks.spark.advise.partitions import Cut, together
from crystalperf.query.frameworks.spark.advise.stages import Stages, affected
from crystalperf.query.frameworks.spark.partitions import DEFAULTS, LARGEST_PART, MIB, OPEN_COST, size_set
from crystalperf.query.frameworks.spark.recommendations import (
    CutFilesLarger,
    CutFilesSmaller,
    GiveSchema,
    ReadInPartitions,
    SplitFiles,
    SpreadRows,
)
from crystalperf.query.frameworks.spark.rules import infers_schema, reads_files, reads_schema
from crystalperf.query.results.findings import IdleStage, MoreData, StragglerStage
from crystalperf.query.results.recommendations import MEASURED, MODELLED, Candidate

MIN_PART_BYTES = MIB / 16
"""Minimum file partition that is worth a task."""

SMALL_PARTS = 0.25
"""The size of file partitions, over the default, below which Spark makes many more tasks than by default."""

MANY = 4
"""Tasks per slot that are enough for a scan, also to even out its last wave."""


def scans(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages that read files.

    For queries Spark partitions files by min(maxPartitionBytes, max(openCostInBytes, bytes / slots)).  If a task read
    more, Spark could not split the files.
    """
    by_size: list[Cut] = []
    of_rdds: list[Cut] = []
    unsplittable: list[Cut] = []
    by_hand: dict[tuple[int, int, int], list[Cut]] = {}
    for each in cuts:
        if not reads_files(each.detail) or not isinstance(each.cost, IdleStage):
            continue
        facts = each.detail.facts
        if each.has_empty_tasks:
            by_hand.setdefault((each.detail.with_data, facts.tasks, facts.slots), []).append(each)
        elif facts.scope is None:
            of_rdds.append(each)
        elif facts.most_bytes > 1.2 * _part_bytes(properties, each.detail):
            unsplittable.append(each)
        elif each.detail.read_bytes / each.wanted >= MIN_PART_BYTES:
            by_size.append(each)
    if by_size:
        yield _cut_smaller(properties, by_size)
    if of_rdds:  # by their blocks, unless the program requests more
        all_of = together(of_rdds)
        value = ReadInPartitions(
            price="code", because="idle-slots", saving=MODELLED,
            partitions=all_of.wanted, stages=all_of.stages, sql=False,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=all_of.most_ms)
    if unsplittable:
        all_of = together(unsplittable)
        stored = SplitFiles(
            price="code", because="idle-slots", saving=MODELLED, partitions=all_of.wanted, stages=all_of.stages
        )
        yield Candidate(stored, at_most_ms=all_of.most_ms)
    for (with_data, *_), same in by_hand.items():
        all_of = together(same)
        spread = SpreadRows(
            price="code", because="idle-slots", saving=MODELLED,
            partitions=all_of.wanted, stages=all_of.stages, sql=bool(same[0].detail.facts.scope), with_data=with_data,
        )  # fmt: skip
        yield Candidate(spread, at_most_ms=all_of.most_ms)


def larger(properties: Mapping[str, str], stages: Stages, listing: Collection[str]) -> Iterator[Candidate]:
    """Scans of queries in many tasks that read little each, because Spark may make only small partitions of files."""
    size, usual = size_set(properties, LARGEST_PART), DEFAULTS[LARGEST_PART]
    found = [
        each
        for each in stages.details
        if reads_files(each) and each.facts.scope is not None and each.facts.id not in listing
        # As many tasks as the size makes: not those of small files, of which a partition has several.
        and each.facts.tasks > MANY * each.facts.slots and each.read_bytes > 0.5 * size * each.facts.tasks
    ]  # fmt: skip
    if size < SMALL_PARTS * usual and found:
        first = max(found, key=lambda each: each.facts.path_ms)
        value = CutFilesLarger(
            price="setting", because=SPLIT, saving=MODELLED,
            settings=(changed_size(properties, LARGEST_PART, usual),), stages=affected(first, len(found) - 1),
        )  # fmt: skip
        yield Candidate(value, f"{SPLIT}={usual}B")


def unsplit(properties: Mapping[str, str], stages: Stages) -> Iterator[Candidate]:
    """Stages that read files, and wait for the task of a file that is larger than any file partition of Spark."""
    least = 1.2 * size_set(properties, LARGEST_PART)
    found = [
        (detail, cost)
        for detail, cost in stages.pairs(StragglerStage)
        if reads_files(detail) and isinstance(cost.cause, MoreData) and detail.facts.most_bytes > least
    ]
    if found:
        detail, _ = max(found, key=lambda each: each[1].cost_ms)
        value = SplitFiles(
            price="code", because="straggler", saving=MODELLED, partitions=max(detail.facts.tasks, detail.facts.slots),
            stages=affected(detail, len(found) - 1),
        )  # fmt: skip
        yield Candidate(value, at_most_ms=sum(each.cost_ms for _, each in found))


def _part_bytes(properties: Mapping[str, str], detail: StageStats) -> float:
    """The largest file partition that Spark makes of a stage's input."""
    largest, cost = (size_set(properties, key) for key in (LARGEST_PART, OPEN_COST))
    return min(largest, max(cost, detail.read_bytes / max(detail.facts.slots, 1)))


def _cut_smaller(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Candidate:
    all_of = together(cuts)
    after = all_of.first.detail.read_bytes / all_of.wanted
    key = OPEN_COST if after < size_set(properties, OPEN_COST) else LARGEST_PART
    value = CutFilesSmaller(
        price="setting", because="idle-slots", saving=MODELLED,
        settings=(changed_size(properties, key, after),), stages=all_of.stages,
    )  # fmt: skip
    return Candidate(value, f"{SPLIT}={math.ceil(after)}B", all_of.most_ms)


def schemas(details: Sequence[StageStats], listing: Collection[str]) -> Iterator[Candidate]:
    """Jobs that only read the schema of files, which are unnecessary with a given schema: from the files' ends, in a
    stage of one task each, or from all of their rows; then stages that list files for it (`listing`) count too."""
    inferring = [each for each in details if infers_schema(each)]
    if inferring:
        before = list(_listed_before(inferring, [each for each in details if each.facts.id in listing]))
        first = max(inferring, key=lambda each: each.facts.path_ms)
        yield _give_schema(inferring, first, inferred=True, listing=before)
    reading = [each for each in details if each.facts.tasks == 1 and reads_schema(each)]
    if reading:
        yield _give_schema(reading, reading[0], inferred=False)


def _listed_before(inferring: Sequence[StageStats], listing: Sequence[StageStats]) -> Iterator[StageStats]:
    """The last stage of `listing` before each of `inferring`: Spark lists the files of a pattern once for the query and
    once more to infer their schema, and those of a folder only for the latter."""
    last: StageStats | None = None
    reads = {each.facts.id for each in inferring}
    for each in sorted((*inferring, *listing), key=lambda each: [int(part) for part in each.facts.id[6:].split(".")]):
        if each.facts.id not in reads:
            last = each
        elif last is not None and last.place == each.place:
            yield last
            last = None


def _give_schema(
    details: Sequence[StageStats], first: StageStats, *, inferred: bool, listing: Sequence[StageStats] = ()
) -> Candidate:
    value = GiveSchema(
        price="code", because="idle-slots", saving=MEASURED,
        jobs=len(details), stage=first.facts.id, name=first.facts.name, inferred=inferred,
    )  # fmt: skip
    return Candidate(value, at_most_ms=sum(each.facts.path_ms for each in (*details, *listing)))
