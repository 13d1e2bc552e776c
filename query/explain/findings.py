"""What cost time on the critical path, and what to try: one rule a function, each `(facts) → findings`.

A cost is the most that the finding can have cost: the time it held the critical path, or what would be left of it at
best.  `measured` costs are times of the log; `modelled` ones assume how the work would spread; `label` ones rest on
what the index says of the code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from query.answers.values import Finding
from query.explain.facts import Detail, HostTime, Longest, Neighbours
from query.explain.waiting import DRIVER, EXECUTORS, PROGRAM
from query.whatif.sharing import STARVED

SKEW = 2.0
"""A stage is skewed where its longest task takes this many times the median."""

FEWEST_FOR_SKEW = 3

MORE = 1.5
"""What explains a straggler, or marks a slow host, is this many times what is usual."""

IDLE = 0.2
"""Idle slots are worth a word from this share of a stage's slot time."""

STARTING = 0.2
"""So is starting tasks, from this share of their time …"""

GC = 0.1
"""… and garbage collection."""

LITTLE_BYTES = 1 << 20
"""A task that reads less has nothing worth sharing out."""

SLOW_BPS = 1e6
"""A device that moves less than this while it is used is used for something else than moving data."""

_SCHEMA = re.compile(r"(parquet|orc|json|csv|text|load|table|xml|avro) at ")
_LIMIT = re.compile(r"(show|take|head|first|isEmpty|limit|showString|tail) at |^runJob at PythonRDD")
_MIB = 2**20


def driver(
    alone_ms: Mapping[str, float], other_ms: Mapping[str, float], first_executor_ms: float | None
) -> list[Finding]:
    """What held the run up while no task ran."""
    since = "" if not first_executor_ms else f"; the first was ready after {first_executor_ms / 1000:.1f} s"
    unknown = other_ms.get(DRIVER, 0.0)
    unseen = f" ({unknown / 1000:.1f} s of it waiting or unknown)" if unknown > 0.1 * alone_ms[DRIVER] else ""
    return [
        Finding(
            alone_ms[EXECUTORS],
            f"waiting for executors: none was there to run anything{since}",
            "measured",
            "let the cluster manager start them sooner, or keep an application for several runs",
        ),
        Finding(
            alone_ms[PROGRAM],
            "no query and no job was under way: the program itself, its start and its end",
            "measured",
            "look at what the program does between its queries; executors do not shorten this",
        ),
        Finding(
            alone_ms[DRIVER],
            f"the driver alone: planning, listing files, submitting, collecting, while no task ran{unseen}",
            "measured",
            "fewer and larger queries, fewer files; more or faster executors do not shorten this",
        ),
    ]


def straggler(detail: Detail, hosts: Sequence[HostTime]) -> list[Finding]:
    """A stage whose longest task takes much longer than most, and why: data, node or a resource."""
    facts = detail.facts
    if facts.tasks < FEWEST_FOR_SKEW or facts.longest_ms <= SKEW * facts.median_ms:
        return []
    cost = min(facts.longest_ms - facts.median_ms, facts.path_ms)
    times = f"{facts.longest_ms / facts.median_ms:.1f} times the median"
    if facts.median_ms <= 0:
        times = "far more than the median"
    why, advice = _why(detail, hosts)
    what = f"{facts.id} {facts.name}: its longest task (task {detail.longest.task_id}) takes {times}: {why}"
    return [Finding(cost, what, "measured", advice)]


def _why(detail: Detail, hosts: Sequence[HostTime]) -> tuple[str, str]:
    facts, longest = detail.facts, detail.longest
    excess = facts.longest_ms - facts.median_ms
    slower = facts.longest_ms / facts.median_ms if facts.median_ms > 0 else np.inf
    if longest.read_bytes > LITTLE_BYTES and longest.read_bytes > max(MORE, slower / 2) * facts.median_bytes:
        more = longest.read_bytes / facts.median_bytes if facts.median_bytes > 0 else np.inf
        times = f"{more:.1f} times the median" if np.isfinite(more) else "most read nothing"
        if "shuffle read" in detail.kind:
            advice = "a few keys hold most rows: split them (salting), or let adaptive execution split skewed joins"
        else:
            advice = "look for a file that cannot be split (gzip, one row group), or smaller files"
        return f"it read {longest.read_bytes / _MIB:.0f} MiB, {times}", advice
    if longest.gc_ms > excess / 2:
        return f"its executor collected garbage for {longest.gc_ms / 1000:.1f} s", "more memory per executor"
    for host in hosts:
        if host.stage == facts.id and host.host == longest.host and _is_slow(host):
            return (
                f"tasks on {host.host} spend {host.median_ms / max(host.others_ms, 1e-9):.1f} times as long on"
                f" {_word(host.resource)} as on other nodes",
                f"look at {host.host}: its {_word(host.resource)} is slower than its peers'",
            )
    if longest.nth == 1:
        return (
            f"it was the first on executor {longest.executor_id}, which had yet to load and compile code",
            "keep executors alive between runs; it is not the data",
        )
    more_of = _most_excess(longest, detail.median_resource_ms)
    if more_of is not None:
        name, extra = more_of
        return (
            f"not for its data; {extra / 1000:.1f} s of it more on {_word(name)} than usual",
            "compare the node it ran on with its peers" if name != "cpu" else "look at what its rows make it compute",
        )
    return "for no reason that the log tells", "record samples to see what it did"


def _most_excess(longest: Longest, usual: Mapping[str, float]) -> tuple[str, float] | None:
    extra = {name: ms - usual[name] for name, ms in longest.resource_ms.items()}
    name = max(extra, key=lambda each: extra[each])
    return None if name == "other" or extra[name] <= 0 else (name, extra[name])


def _is_slow(host: HostTime) -> bool:
    """Whether tasks on a host spend clearly more time on a resource, though they read no more than the others do."""
    data = host.median_bytes / host.others_bytes if host.others_bytes > 0 else 1.0
    return (
        host.resource != "other"
        and host.median_ms > MORE * host.others_ms * max(data, 1.0)
        and host.median_ms - host.others_ms > 0.2 * host.others_duration_ms
    )


def slow_hosts(hosts: Sequence[HostTime], details: Sequence[Detail]) -> list[Finding]:
    """A host on which a resource is slower than on its peers, in most stages that use it: a malfunction (§4.2)."""
    by_id = {detail.facts.id: detail.facts for detail in details}
    groups: dict[tuple[str, str], list[HostTime]] = {}
    for each in hosts:
        if each.others_ms > 0.1 * each.others_duration_ms or _is_slow(each):
            groups.setdefault((each.host, each.resource), []).append(each)
    found = []
    for (host, resource), rows in groups.items():
        slow = [each for each in rows if _is_slow(each)]
        weight = sum(each.median_ms * each.tasks for each in slow)
        if not slow or weight < 0.5 * sum(each.median_ms * each.tasks for each in rows):
            continue
        cost = 0.0
        for each in slow:
            facts = by_id.get(each.stage)
            if facts is not None and facts.median_ms > 0:
                share = (each.median_ms - each.others_ms) / (each.others_duration_ms + each.median_ms - each.others_ms)
                cost += facts.path_ms * share
        times = sum(each.median_ms for each in slow) / max(sum(each.others_ms for each in slow), 1e-9)
        stages = f"{len(slow)} stage" + ("s" if len(slow) > 1 else "")
        found.append(
            Finding(
                cost,
                f"tasks on {host} spend {times:.1f} times as long on {_word(resource)} as on its peers, in {stages}",
                "label",
                f"check {host}: a slow or crowded {_word(resource)}, other jobs, a throttled instance",
            )
        )
    return found


def idle_slots(detail: Detail) -> list[Finding]:
    """Slots without work while a stage was on the path: too few tasks, or a last wave that is half empty."""
    facts = detail.facts
    if facts.slots < 2 or facts.length_ms <= 0 or facts.path_ms <= 0:
        return []
    if facts.tasks < facts.slots:
        advice = few_tasks_advice(detail)
        if advice is None:
            return []
        shorter = facts.path_ms * (1 - facts.tasks / facts.slots)
        tasks = "1 task" if facts.tasks == 1 else f"{facts.tasks} tasks"
        return [Finding(shorter, f"{facts.id} {facts.name}: {tasks} for {facts.slots} slots", "modelled", advice)]
    idle = facts.idle_ms / (facts.slots * facts.length_ms)
    if idle < IDLE:
        return []
    what = (
        f"{facts.id} {facts.name}: {facts.tasks} tasks on {facts.slots} slots ({facts.waves:.1f} waves) leave"
        f" {idle:.0%} of the slots' time idle"
    )
    advice = "smaller partitions even out the last wave"
    if facts.skew_bytes is not None and facts.skew_bytes > MORE:
        what += f"; the task that read most read {facts.skew_bytes:.1f} times the median"
        advice = "a few keys hold many rows: split them (salting), or let adaptive execution split skewed joins"
    return [Finding(facts.path_ms * idle, what, "modelled", advice)]


def few_tasks_advice(detail: Detail) -> str | None:
    """What to do about a stage with fewer tasks than slots; None where nothing can or need be done."""
    facts = detail.facts
    if facts.tasks == 1 and _reads_schema(detail):
        return "Spark reads the files' schema in one task: give the schema, or read from a table that knows it"
    if _LIMIT.match(detail.call_site) or {"CollectLimit", "GlobalLimit", "TakeOrderedAndProject"} & set(
        detail.operators
    ):
        return None  # a limit asks for one partition first, in the hope that it has the rows
    if facts.tasks == 1 and any("SinglePartition" in text for text in detail.details):
        return None  # a global aggregate or sort ends in one task whatever the partitions are
    if "AQEShuffleRead" in detail.operators or "CustomShuffleReader" in detail.operators:
        if detail.read_bytes < LITTLE_BYTES * facts.tasks:
            return None  # adaptive execution joined partitions that hold next to nothing
        return (
            "adaptive execution joined small partitions: a lower"
            " spark.sql.adaptive.coalescePartitions.minPartitionSize or advisoryPartitionSizeInBytes keeps more"
        )
    if "scan" in detail.kind and "shuffle read" not in detail.kind:
        return "a lower spark.sql.files.maxPartitionBytes, or files that can be split, would use the idle slots"
    if "python" in detail.kind and "scan" not in detail.kind and "shuffle" not in detail.kind:
        return "more slices where the data is handed to Spark would use the idle slots"
    return "more partitions would use the idle slots"


def _reads_schema(detail: Detail) -> bool:
    """Whether a stage reads the schema of files, for the query to come."""
    return detail.facts.sql_id is None and bool(_SCHEMA.match(detail.call_site)) and not detail.read_bytes


def starting_tasks(detail: Detail) -> list[Finding]:
    """Tasks so short that handing them out takes a good part of their time."""
    facts = detail.facts
    share = facts.starting_ms / facts.task_ms if facts.task_ms > 0 else 0.0
    if share < STARTING or facts.tasks <= facts.slots:
        return []
    what = (
        f"{facts.id} {facts.name}: {share:.0%} of its tasks' time went to scheduling and unpacking them"
        f" ({facts.scheduler_delay_ms / 1000:.1f} s of scheduler delay over {facts.tasks} tasks)"
    )
    return [Finding(facts.path_ms * share, what, "measured", "fewer, larger partitions")]


def spilling(details: Sequence[Detail], spilling_operators: Sequence[str]) -> list[Finding]:
    """Memory that did not suffice, so that rows went to disk."""
    stages = [detail.facts for detail in details if detail.facts.spill_bytes]
    spilled = sum(each.spill_bytes for each in stages)
    if not spilled:
        return []
    cost = sum(each.path_ms * each.resource_ms["disk"] / each.task_ms for each in stages if each.task_ms > 0)
    worst = max(stages, key=lambda each: each.spill_bytes)
    by = f", mostly by {spilling_operators[0]}" if spilling_operators else ""
    what = f"{spilled / _MIB:.0f} MiB were spilled to disk for want of memory, most in {worst.id} {worst.name}{by}"
    return [Finding(cost, what, "modelled", "more memory per executor, fewer slots, or more partitions")]


def collecting_garbage(details: Sequence[Detail]) -> list[Finding]:
    """Heaps so full that collecting garbage takes a good part of the tasks' time."""
    found = [each.facts for each in details if each.facts.gc_ms > GC * each.facts.task_ms > 0]
    if not found:
        return []
    cost = sum(each.path_ms * min(each.gc_ms / each.task_ms, 1.0) for each in found)
    worst = max(found, key=lambda each: each.gc_ms)
    what = f"garbage collection took {worst.gc_ms / worst.task_ms:.0%} of task time in {worst.id} {worst.name}" + (
        f", and a tenth or more in {len(found) - 1} other" + ("s" if len(found) > 2 else "") if len(found) > 1 else ""
    )
    return [Finding(cost, what, "measured", "more memory per executor, or fewer slots")]


def short_of_cpus(details: Sequence[Detail], neighbours: Sequence[Neighbours], cores_per_slot: float) -> list[Finding]:
    """Tasks that could have run and had no CPU: for other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that executors were seen to use, inf where they were at no limit.  A task whose Python
    worker computes has none itself.
    """
    mine = [each for each in details if each.ready_ms > 0 and "python" not in each.kind]
    ready_ms = sum(each.ready_ms for each in mine)
    cpu_ms = sum(each.facts.resource_ms["cpu"] for each in mine)
    if cpu_ms < STARVED * (cpu_ms - ready_ms) or not ready_ms:
        return []
    cost = sum(each.facts.path_ms * each.ready_ms / each.facts.task_ms for each in mine)
    waited = f"{ready_ms / 1000:.1f} s of task time, {ready_ms / cpu_ms:.0%} of their CPU time"
    what = f"tasks could have run but had no CPU for {waited}"
    advice = []
    if np.isfinite(cores_per_slot):
        what += f"; executors never got more than {cores_per_slot:.2f} cores a slot"
        advice.append("a larger CPU limit for each executor, or fewer slots on it")
    crowds = {each.stage: each for each in neighbours}
    crowded = [(each.ready_ms * crowd.crowded, crowd) for each in mine if (crowd := crowds.get(each.facts.id))]
    crowded_ms = sum(ms for ms, _ in crowded)
    if crowded_ms >= ready_ms / 2:
        others = sum(ms * crowd.others_cores for ms, crowd in crowded) / crowded_ms
        processors = sum(ms * crowd.processors for ms, crowd in crowded) / crowded_ms
        what += f"; their machines were full, and other programs used {others:.1f} of {processors:.0f} cores"
        advice.append("run it without its neighbours: all answers here take them for granted")
    return [Finding(cost, what, "measured", "; or ".join(advice) or "fewer slots than cores")]


def wasted(task_ms: float, tasks: int, reason: str | None, slots: int) -> list[Finding]:
    """Work that was thrown away: tasks that failed, or were killed as a copy was faster or their stage was over."""
    if tasks == 0 or slots == 0:
        return []
    what = f"{tasks} failed or killed task{'s' if tasks > 1 else ''} ran for {task_ms / 1000:.1f} s of task time"
    if reason:
        what += f"; most often: {reason}"
    advice = "look at why they ended; where they were speculative copies, at what made the others slow"
    return [Finding(task_ms / slots, what, "modelled", advice)]


def compiling(details: Sequence[Detail], compiling_ms: Mapping[str, float]) -> list[Finding]:
    """Generated code compiled within tasks, which the first run of a plan on an executor pays."""
    cost = sum(
        each.facts.path_ms * compiling_ms.get(each.facts.id, 0.0) / each.facts.task_ms
        for each in details
        if each.facts.task_ms > 0
    )
    if cost <= 0:
        return []
    return [
        Finding(
            cost,
            "tasks compiled generated code, or waited for another task to",
            "label",
            "the first query on an executor pays this: keep executors, or run queries of one shape together",
        )
    ]


def odd_use(details: Sequence[Detail], limits: Collection[str]) -> list[Finding]:
    """Time on a device that hardly moved data: a misconfiguration as a rule (§4.2, §7.5).

    `limits` are the resources that hold the run up: what is slow because it is full is not odd.
    """
    found = []
    for detail in details:
        facts = detail.facts
        for resource, moved in (
            ("disk", detail.input_bytes + detail.written_bytes + detail.read_bytes),
            ("net", detail.remote_bytes + detail.input_bytes),
        ):
            time_ms = facts.resource_ms[resource]
            if resource in limits or time_ms <= 0.1 * facts.task_ms or facts.path_ms <= 0:
                continue
            if _reads_schema(detail):  # it reads the ends of files, and has a finding of its own
                continue
            if moved / (time_ms / 1000) >= SLOW_BPS:
                continue
            found.append(
                Finding(
                    facts.path_ms * time_ms / facts.task_ms,
                    f"{facts.id} {facts.name}: {time_ms / 1000:.1f} s of task time on {_word(resource)} for"
                    f" {moved / _MIB:.1f} MiB",
                    "label",
                    _ODD_ADVICE[resource],
                )
            )
    return found


_ODD_ADVICE = {
    "disk": "something else than data: many small files, metadata, a disk that is slow to answer or shared",
    "net": "something else than data: connections, retries, name look-ups, a service that is slow to answer",
}


def _word(resource: str) -> str:
    return {"cpu": "the CPU", "disk": "disk", "net": "network"}.get(resource, "waiting or work unknown")
