"""Starfish's what-if engine: a job's phases under other settings, from its profile (Herodotou and Babu, VLDB 2011).

A profile has averages of tasks: counters, statistics of the data (such as the output of a map over its input), costs
(ns a byte or a record) and times of phases (ms).  Under other settings the statistics stay; they give counters, and
these times the costs give phases.  The formulas are in Herodotou, Hadoop Performance Models (CS-2011-05, Duke), with
the rounding of the program.  Sizes are in bytes, uncompressed unless it says so.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

NS_PER_MS = 1e6
MIB = 1 << 20

ONE_BY_DEFAULT = ("MAP_SIZE_SEL", "MAP_PAIRS_SEL", "REDUCE_SIZE_SEL", "REDUCE_PAIRS_SEL", "COMBINE_SIZE_SEL",
                  "COMBINE_PAIRS_SEL", "REDUCE_PAIRS_PER_GROUP")  # fmt: skip
DEFAULT_STATISTICS = {**dict.fromkeys(ONE_BY_DEFAULT, 1.0), "INPUT_PAIR_WIDTH": 100.0}
DEFAULT_RATIO = 0.3
"""Compressed over uncompressed bytes."""

DEFAULT_COSTS = {"COMBINE_CPU_COST": 4000.0, "INTERM_COMPRESS_CPU_COST": 150.0, "INTERM_UNCOMPRESS_CPU_COST": 100.0,
                 "INPUT_UNCOMPRESS_CPU_COST": 100.0, "OUTPUT_COMPRESS_CPU_COST": 150.0}  # fmt: skip
"""Costs of what the profiled run did not do, ns a record or a byte."""


@dataclass(frozen=True)
class TaskProfile:
    """Averages of maps with one input, or of reducers: see the module; all by Starfish's names."""

    tasks: int
    counters: Mapping[str, float]
    statistics: Mapping[str, float]
    costs: Mapping[str, float]
    timings: Mapping[str, float]

    def statistic(self, name: str) -> float:
        """A statistic, or the default of one that was not measured."""
        return self.statistics.get(name, DEFAULT_STATISTICS.get(name, DEFAULT_RATIO))

    def cost(self, name: str) -> float:
        """A cost, or the default of one that was not measured."""
        return self.costs.get(name) or DEFAULT_COSTS.get(name, 0.0)

    def compressed_input(self) -> bool:
        """Whether maps read compressed input."""
        return "INPUT_COMPRESS_RATIO" in self.statistics

    def split_bytes(self) -> float:
        """The bytes that a map reads, compressed if its input is."""
        has = self.counters
        return has.get("HDFS_BYTES_READ", has.get("S3N_BYTES_READ", has["MAP_INPUT_BYTES"]))


@dataclass(frozen=True)
class Profile:
    """A job's profile: its maps by input, and its reducers, None without any."""

    maps: tuple[TaskProfile, ...]
    reducers: TaskProfile | None


@dataclass(frozen=True)
class Settings:
    """The settings of a job that the model has terms for, with Hadoop's defaults."""

    reducers: int = 1
    sort_mb: int = 100
    record_share: float = 0.05
    spill_share: float = 0.8
    factor: int = 10
    combines: bool = False
    combine_from_spills: int = 3
    compresses_maps: bool = False
    compresses_output: bool = False
    heap_bytes: int = 200 * MIB
    shuffle_share: float = 0.7
    merge_share: float = 0.66
    merge_segments: int = 1000
    kept_share: float = 0.0
    slow_start: float = 0.05


@dataclass(frozen=True)
class Merge:
    """The cost of merging files on a disk: records merged and spilled, bytes read and written (compressed if they
    are), and the records into and out of a combiner."""

    records: float = 0
    spilled: float = 0
    read: float = 0
    written: float = 0
    combined: float = 0
    combined_to: float = 0


@dataclass(frozen=True)
class Mapped:
    """A map's phases by name, ms, and what it leaves for reducers: bytes, compressed if they are, and records."""

    phases: Mapping[str, float]
    left_bytes: int
    left_records: float


@dataclass(frozen=True)
class Spilled:
    """The spills of a map: their number, the records in a full buffer, and the records and bytes of a file."""

    count: int
    buffered: int
    records: int
    size: int
    all_records: int
    all_bytes: int


def first_merge(files: int, factor: int) -> int:
    """The files that Hadoop merges first, so that later merges have as many as they may."""
    if files <= factor:
        return files
    return (files - 1) % (factor - 1) + 1 if (files - 1) % (factor - 1) else factor


def simulated(files: list[tuple[int, int]], factor: int, in_memory: tuple[int, int] = (0, 0)) -> Merge:
    """All merges before the last one, of files of (bytes, records).  The first also takes bytes and records that are in
    memory."""
    waiting = list(files)
    heapq.heapify(waiting)
    read = written = spilled = 0
    is_first = True
    while len(waiting) > factor:
        taken = [heapq.heappop(waiting) for _ in range(first_merge(len(waiting), factor) if is_first else factor)]
        size, records = (sum(each[n] for each in taken) for n in (0, 1))
        read += size
        size, records = (size + in_memory[0], records + in_memory[1]) if is_first else (size, records)
        written, spilled, is_first = written + size, spilled + records, False
        heapq.heappush(waiting, (size, records))
    total = sum(records for _, records in files) + in_memory[1]
    return Merge(total + spilled if len(files) > 1 else 0, spilled, read, written)


# Maps -----------------------------------------------------------------------------------------------------------------


def mapped(source: TaskProfile, conf: Settings, split_bytes: float) -> Mapped:
    """A map of a split under other settings."""
    ratio = source.statistic("INPUT_COMPRESS_RATIO") if source.compressed_input() else 1.0
    into = split_bytes / ratio
    records = into / source.statistic("INPUT_PAIR_WIDTH")
    out, out_records = into * source.statistic("MAP_SIZE_SEL"), records * source.statistic("MAP_PAIRS_SEL")
    if out < 1 or out_records < 1:
        out, out_records = source.counters["MAP_OUTPUT_BYTES"] / source.counters["MAP_OUTPUT_RECORDS"], 1
    read = split_bytes * source.cost("READ_HDFS_IO_COST")
    read += split_bytes * source.cost("INPUT_UNCOMPRESS_CPU_COST") * source.compressed_input()
    phases = {
        "setup": source.timings.get("SETUP", 0.0),
        "read": read / NS_PER_MS,
        "map": int(records) * source.cost("MAP_CPU_COST") / NS_PER_MS,
        "cleanup": source.timings.get("CLEANUP", 0.0),
    }
    if conf.reducers == 0:
        left = int(out * (source.statistic("OUT_COMPRESS_RATIO") if conf.compresses_output else 1))
        packing = int(out) * source.cost("OUTPUT_COMPRESS_CPU_COST") * conf.compresses_output
        phases["write"] = (packing + left * source.cost("WRITE_HDFS_IO_COST")) / NS_PER_MS
        return Mapped(phases, left, out_records)
    spills = spilled(source, conf, int(out), int(out_records))
    merge = final_merge(source, conf, spills, int(out), int(out_records))
    phases |= _spill_phases(source, conf, spills, int(out_records))
    phases["merge"] = _merge_ms(source, conf, merge, spills.all_bytes - spills.count * spills.size)
    left_records = out_records if not conf.combines else spills.all_records + merge.combined_to - merge.combined
    return Mapped(phases, spills.all_bytes + round(merge.written - merge.read), int(left_records))


def _selectivity(source: TaskProfile, kind: str, counter: str) -> float:
    """A combiner's output over its input, times the logarithm of its input: that is what the engine keeps."""
    per_spill = source.counters[counter] / source.counters["MAP_NUM_SPILLS"]
    return source.statistic(f"COMBINE_{kind}_SEL") * math.log(per_spill)


def spilled(source: TaskProfile, conf: Settings, out: int, records: int) -> Spilled:
    """The spills of a map's output: a buffer is full by its bytes, or by its records of 16 bytes each."""
    buffer = conf.sort_mb * MIB * conf.spill_share
    by_bytes = math.floor(buffer * (1 - conf.record_share) / (out / records))
    by_records = math.floor(buffer * conf.record_share / 16)
    count = math.ceil(records / min(by_bytes, by_records, records))
    buffered, size = round(records / count), round(out / count)
    in_file, file_bytes = float(buffered), float(size)
    if conf.combines:
        in_file *= _selectivity(source, "PAIRS", "MAP_OUTPUT_RECORDS") / math.log(buffered)
        file_bytes *= _selectivity(source, "SIZE", "MAP_OUTPUT_BYTES") / math.log(size)
    if conf.compresses_maps:
        file_bytes *= source.statistic("INTERM_COMPRESS_RATIO")
    return Spilled(count, buffered, int(in_file), int(file_bytes), round(count * in_file), round(count * file_bytes))


def final_merge(source: TaskProfile, conf: Settings, spills: Spilled, out: int, out_records: int) -> Merge:
    """The merge of a map's spills into one file."""
    if spills.count == 1:
        return Merge()
    before = simulated([(spills.size, spills.records)] * spills.count, conf.factor)
    records, size = spills.count * spills.records, spills.count * spills.size
    written, combined, combined_to = float(size), 0, 0
    if conf.combines and min(spills.count, conf.factor) >= conf.combine_from_spills:
        groups = math.ceil(
            out_records * source.counters.get("MAP_MAX_UNIQUE_GROUPS", 1) / source.counters["MAP_OUTPUT_RECORDS"]
        )
        combined = records
        pairs, bytes_ = (
            _selectivity(source, kind, f"MAP_OUTPUT_{name}") for kind, name in (("PAIRS", "RECORDS"), ("SIZE", "BYTES"))
        )
        combined_to = max(int(records * pairs / math.log(records)), spills.records)
        written = max(size * bytes_ / math.log(size), spills.size)
        if groups < records:
            combined_to, written = max(combined_to, groups), max(written, out / out_records * groups)
    return Merge(
        spills.all_records + before.spilled, before.spilled + (combined_to or records), before.read + size,
        before.written + written, combined, combined_to,
    )  # fmt: skip


def _spill_phases(source: TaskProfile, conf: Settings, spills: Spilled, records: int) -> dict[str, float]:
    on_disk = spills.count * spills.size
    per_reducer = max(spills.buffered / conf.reducers, 10)
    ns = records * math.log(per_reducer) * source.cost("SORT_CPU_COST")
    ns += records * source.cost("COMBINE_CPU_COST") * conf.combines
    ns += on_disk * (_packing(source) * conf.compresses_maps + source.cost("WRITE_LOCAL_IO_COST"))
    collect = records * (source.cost("PARTITION_CPU_COST") + source.cost("SERDE_CPU_COST"))
    return {"collect": collect / NS_PER_MS, "spill": ns / NS_PER_MS}


def _packing(source: TaskProfile) -> float:
    """The cost of compressing, ns a compressed byte."""
    return source.cost("INTERM_COMPRESS_CPU_COST") / source.statistic("INTERM_COMPRESS_RATIO")


def _merge_ms(source: TaskProfile, conf: Settings, merge: Merge, also_written: float = 0.0) -> float:
    """The time of merging."""
    written = merge.written + also_written
    ns = merge.records * source.cost("MERGE_CPU_COST") + merge.combined * source.cost("COMBINE_CPU_COST")
    ns += merge.read * source.cost("READ_LOCAL_IO_COST") + written * source.cost("WRITE_LOCAL_IO_COST")
    if conf.compresses_maps:
        ns += merge.read * source.cost("INTERM_UNCOMPRESS_CPU_COST") + written * _packing(source)
    return ns / NS_PER_MS


# Reducers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copied:
    """The copied outputs of maps: merges while copying and after it, bytes on a disk, and the reducer's input."""

    shuffle: Merge
    sort: Merge
    on_disk: float
    input_bytes: float
    input_records: float


def reduced(source: TaskProfile, conf: Settings, maps: int, size: int, records: int) -> Mapping[str, float]:
    """The phases of a reducer by name, ms, which gets so many bytes (compressed if they are) and records of `maps`."""
    copied = _copied(source, conf, maps, size, records)
    unpacking = source.cost("INTERM_UNCOMPRESS_CPU_COST") * conf.compresses_maps
    into = copied.input_bytes
    out = into * source.statistic("REDUCE_SIZE_SEL")
    left = int(out * (source.statistic("OUT_COMPRESS_RATIO") if conf.compresses_output else 1))
    packing = int(out) * source.cost("OUTPUT_COMPRESS_CPU_COST") * conf.compresses_output
    reading = int(copied.on_disk) * source.cost("READ_LOCAL_IO_COST")
    return {
        "shuffle": size * (source.cost("NETWORK_COST") + unpacking) / NS_PER_MS
        + _merge_ms(source, conf, copied.shuffle),
        "sort": _merge_ms(source, conf, copied.sort),
        "setup": source.timings.get("SETUP", 0.0),
        "reduce": (reading + int(copied.input_records) * source.cost("REDUCE_CPU_COST")) / NS_PER_MS,
        "write": (packing + left * source.cost("WRITE_HDFS_IO_COST")) / NS_PER_MS,
        "cleanup": source.timings.get("CLEANUP", 0.0),
    }


def _copied(source: TaskProfile, conf: Settings, maps: int, size: int, records: int) -> Copied:
    """The copied outputs: they fill a buffer in memory, whose content is merged into a file, or go to a disk."""
    packed, pairs = size / maps, records / maps
    plain = packed / source.statistic("INTERM_COMPRESS_RATIO") if conf.compresses_maps else packed
    buffer = conf.shuffle_share * conf.heap_bytes
    files, in_memory, in_file, combined = maps, 0, 1, 0.0
    scale = (1.0, 1.0)
    if plain < 0.25 * buffer:
        full = conf.merge_share * buffer / plain
        in_file = min(math.ceil(full) if math.ceil(full) * plain <= buffer else math.floor(full), conf.merge_segments)
        files, in_memory = maps // in_file, maps % in_file
        combined = files * in_file * pairs
        if conf.combines:
            scale = (source.statistic("COMBINE_SIZE_SEL"), source.statistic("COMBINE_PAIRS_SEL"))
    file_bytes, file_pairs = in_file * packed * scale[0], in_file * pairs * scale[1]
    factor = conf.factor
    merges = 1 + (files - 2 * factor + 1) // factor if files >= 2 * factor - 1 else 0
    both, both_pairs = merges * factor * file_bytes, merges * factor * file_pairs
    shuffle = Merge(
        combined + both_pairs, 0, int(both), int(files * file_bytes + both), combined if conf.combines else 0
    )
    alone = files - factor * merges
    over = in_memory * plain - conf.heap_bytes * conf.kept_share
    evicted = math.ceil(over / plain) if over > 0 else 0
    spare = int(evicted > 0 and merges + alone < factor)
    on_disk = both + alone * file_bytes + spare * evicted * packed
    on_disk_pairs = both_pairs + alone * file_pairs + spare * evicted * pairs
    kept = in_memory - evicted
    sort = Merge(spare * evicted * pairs, 0, 0, int(spare * evicted * packed))
    if merges + alone + spare > factor:
        each = [(int(factor * file_bytes), int(factor * file_pairs))] * merges
        each += [(int(file_bytes), int(file_pairs))] * alone
        each += [(int(evicted * packed), int(evicted * pairs))] * spare
        more = simulated(each, factor, (evicted * int(packed), evicted * int(pairs)))
        sort = Merge(sort.records + more.records, 0, more.read, sort.written + more.written)
    into = on_disk + kept * packed
    if conf.compresses_maps:
        into /= source.statistic("INTERM_COMPRESS_RATIO")
    return Copied(shuffle, sort, on_disk, int(into), int(on_disk_pairs + kept * pairs))
