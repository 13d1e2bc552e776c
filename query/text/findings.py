"""Sentences of findings and of their advice.

`text_of` writes a finding or an advice; `advice_text` is the advice of a finding with details from the finding.
"""

from __future__ import annotations

from crystalperf.indexes.resources import DISK, NET
from crystalperf.query.results import advice as todo
from crystalperf.query.results import findings
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE, text_of
from crystalperf.query.trace.amounts import counted, lasting, part_of, volume
from crystalperf.query.trace.vocabulary import either, plural, with_article

NAMED = 2
"""Maximum stages of one finding that are named, those with the largest costs …"""

NAMED_SHARE = 0.25
"""… if their cost has at least this share of the largest."""

MAX_TIMES = 100
"""If a time is more than this many times another, the text shows the time, not the ratio."""

_REASONS_SHOWN = 3
_LOST_SHOWN = 5


def advice_text(found: findings.Finding, words: Words) -> str:
    """The advice of a finding; empty if it has none."""
    if found.advice is None:
        return ""
    text = text_of(found.advice, words)
    if isinstance(found, findings.StageFinding) and (other := found.other_advice) is not None:
        text += f"; for {other.id}: {text_of(other.advice, words)}"
    if isinstance(found, findings.IdleSlots) and found.unmodelled is not None:
        task_word, slot_word = words.vocabulary.tasks, words.vocabulary.slots
        effect = f"{task_word} that wait for it gain nothing from more {slot_word}"
        text += f" (the {found.unmodelled} is not modelled: {effect})"
    if isinstance(found, findings.NoScope):
        text += f"; more {words.vocabulary.workers} do not shorten this"
    if isinstance(found, findings.Driver):
        text += f"; more or faster {words.vocabulary.workers} do not shorten this"
    return text


# Several stages -------------------------------------------------------------------------------------------------------


def _stages(found: findings.StageFinding, words: Words, have: str) -> str:
    """The only stage of a finding; or the number of stages that `have` the problem, with the worst of them."""
    first = found.stages[0]
    if len(found.stages) == 1:
        return f"{first.id} {first.name}: {text_of(first, words)}"
    shown = [each for each in found.stages[:NAMED] if each.cost_ms >= NAMED_SHARE * first.cost_ms]
    named = "; ".join(f"{each.id} {each.name}: {text_of(each, words)} ({lasting(each.cost_ms)})" for each in shown)
    rest = len(found.stages) - len(shown)
    more = f"; and {counted(rest, 'other')}" if rest > 0 else ""
    return f"{counted(len(found.stages), words.vocabulary.stage)} {have}: {named}{more}"


@CORE.of(findings.IdleSlots)
def idle_slots(found: findings.IdleSlots, words: Words) -> str:
    task_word, slot_word = words.vocabulary.tasks, words.vocabulary.slots
    have: dict[findings.IdleCause, str] = {
        "few-tasks": f"have fewer {task_word} than {slot_word}",
        "empty-tasks": f"have {task_word} without input",
        "last-wave": f"leave {slot_word} idle",
        "bound-to-data": f"leave {slot_word} idle because of data locality",
        "free-slots": f"leave {slot_word} idle",
    }
    return _stages(found, words, have[found.stages[0].cause])


@CORE.of(findings.IdleStage)
def idle_stage(stage: findings.IdleStage, words: Words) -> str:
    vocabulary = words.vocabulary
    task_word, slot_word = vocabulary.tasks, vocabulary.slots
    tasks, slots = counted(stage.tasks, vocabulary.task), f"{stage.slots} {slot_word}"
    if stage.cause == "few-tasks":
        return f"{tasks} for {slots}"
    if stage.cause == "empty-tasks":
        return f"only {stage.with_data} of {tasks} had input, for {slots}"
    share = f"{100 * stage.idle_share:.0f} % of {words.vocabulary.slot} time idle"
    text = f"{tasks} on {slots} ({stage.waves:.1f} waves) leave {share}"
    if stage.cause == "bound-to-data":
        storing = f"the {vocabulary.workers} that store their data"
        return f"{text}: {task_word} waited for {storing}{on_one(stage, words, ', and')}"
    if stage.cause == "free-slots":
        return f"{text}, and not only in the last wave: {slot_word} were free while {task_word} waited"
    if stage.skew_bytes is not None:
        text += f"; the largest {vocabulary.task} read {stage.skew_bytes:.1f} times the median"
    return text


def on_one(stage: findings.IdleStage, words: Words, before: str) -> str:
    """How many of a stage's tasks ran on one worker, if most did; else empty."""
    if stage.on_busiest <= stage.tasks / 2:
        return ""
    vocabulary = words.vocabulary
    return f"{before} {stage.on_busiest} of {stage.tasks} {vocabulary.tasks} ran on one {vocabulary.worker}"


@CORE.of(findings.Straggler)
def straggler(found: findings.Straggler, words: Words) -> str:
    return _stages(found, words, f"have {with_article(words.vocabulary.task)} much longer than usual")


@CORE.of(findings.StragglerStage)
def straggler_stage(stage: findings.StragglerStage, words: Words) -> str:
    unit = words.vocabulary.task
    usual = _usual(stage.few)
    took = f"{stage.duration_ms / stage.usual_ms:.1f} times {usual}" if stage.usual_ms > 0 else f"far more than {usual}"
    return f"its longest {unit} ({unit} {stage.task_id}) takes {took}: {text_of(stage.cause, words)}"


def _usual(few: bool) -> str:
    """The value that a straggler is compared with."""
    return "the mean of the others" if few else "the median"


@CORE.of(findings.MoreData)
def more_data(cause: findings.MoreData, _words: Words) -> str:
    usual = cause.median_bytes
    times = f"{cause.read_bytes / usual:.1f} times {_usual(cause.few)}" if usual > 0 else "while most read nothing"
    return f"it read {volume(cause.read_bytes)}, {times}"


@CORE.of(findings.CollectedGarbage)
def collected_garbage(cause: findings.CollectedGarbage, words: Words) -> str:
    return f"its {words.vocabulary.worker} spent {lasting(cause.gc_ms)} on garbage collection"


@CORE.of(findings.SlowHost)
def slow_host(cause: findings.SlowHost, words: Words) -> str:
    spent = _so_long(cause.median_ms, cause.others_ms, 1, words.device(cause.resource), "on other nodes")
    return f"{words.vocabulary.tasks} on {cause.host} spend {spent}"


@CORE.of(findings.FirstOnWorker)
def first_on_worker(cause: findings.FirstOnWorker, words: Words) -> str:
    loaded = (
        "which still had to load and compile code" if cause.confirmed else "which may have loaded and compiled code"
    )
    return f"it was the first on {words.vocabulary.worker} {cause.worker}, {loaded}"


@CORE.of(findings.MoreOfResource)
def more_of_resource(cause: findings.MoreOfResource, words: Words) -> str:
    return (
        f"it spent {lasting(cause.extra_ms)} more than usual on {words.device(cause.resource)}, not because of its data"
    )


@CORE.of(findings.Waited)
def waited(cause: findings.Waited, _words: Words) -> str:
    computed = part_of(cause.cpu_ms, cause.duration_ms, "its")
    return f"it computed for {computed} and waited for the rest; the log does not say why"


@CORE.of(findings.Unexplained)
def unexplained(_cause: findings.Unexplained, _words: Words) -> str:
    return "the log does not show why"


@CORE.of(findings.StartingTasks)
def starting_tasks(found: findings.StartingTasks, words: Words) -> str:
    return _stages(found, words, f"have very short {words.vocabulary.tasks}, whose start takes much of their time")


@CORE.of(findings.StartingStage)
def starting_stage(stage: findings.StartingStage, words: Words) -> str:
    task_word = words.vocabulary.tasks
    text = f"{100 * stage.share:.0f} % of the time of its {stage.tasks} {task_word} was scheduling and deserialization"
    return f"{text} ({lasting(stage.scheduler_delay_ms)} of that was scheduling)" if stage.scheduler_delay_ms else text


@CORE.of(findings.OddUse)
def odd_use(found: findings.OddUse, words: Words) -> str:
    return _stages(found, words, f"spend time on {words.device(found.stages[0].resource)} but move little data")


@CORE.of(findings.OddUseStage)
def odd_use_stage(stage: findings.OddUseStage, words: Words) -> str:
    spent = f"{lasting(stage.resource_ms)} of {words.vocabulary.task} time on {words.device(stage.resource)}"
    return f"{spent} for only {volume(stage.moved_bytes)}"


# CPUs and hosts -------------------------------------------------------------------------------------------------------


@CORE.of(findings.ShortOfCpus)
def short_of_cpus(found: findings.ShortOfCpus, words: Words) -> str:
    vocabulary = words.vocabulary
    waited = part_of(found.waited_ms, found.cpu_ms)
    text = f"{vocabulary.tasks} waited for a CPU for {waited} in which they were ready to run"
    if found.throttled_share is not None:
        share = f"{100 * found.throttled_share:.0f} %"
        return f"{text}; containers of {vocabulary.workers} exhausted their CPU quota in {share} of its periods"
    causes = []
    if found.cores_per_slot is not None:
        causes.append(f"{vocabulary.workers} got at most {found.cores_per_slot:.2f} cores per {vocabulary.slot}")
    if found.others_cores is not None:
        used = f"{found.others_cores:.1f} of their machines' {found.host_cores:.0f} cores"
        causes.append(f"other programs or containers used {used}")
    return f"{text}; {', and '.join(causes)}" if causes else text


@CORE.of(findings.SlowHosts)
def slow_hosts(found: findings.SlowHosts, words: Words) -> str:
    device = words.device(found.resource)
    spent = _so_long(found.median_ms, found.others_ms, found.stages, device, "on other nodes")
    vocabulary = words.vocabulary
    return f"{vocabulary.tasks} on {found.host} spend {spent}, in {counted(found.stages, vocabulary.stage)}"


def _so_long(own_ms: float, others_ms: float, stages: int, device: str, others: str) -> str:
    """How much longer tasks spend on a device than others; the times are sums over `stages` stages."""
    if own_ms > MAX_TIMES * others_ms:
        return f"{lasting(own_ms / stages)} each on {device}, but almost none {others}"
    return f"{own_ms / others_ms:.1f} times as long on {device} as {others}"


# Memory ---------------------------------------------------------------------------------------------------------------


@CORE.of(findings.Spilling)
def spilling(found: findings.Spilling, _words: Words) -> str:
    by = "" if found.operator is None else f", mostly by {found.operator}"
    most = f"most in {found.stage.id} {found.stage.name}{by}"
    return f"{volume(found.spilled_bytes)} spilled to disk because memory was short, {most}"


@CORE.of(findings.GarbageCollection)
def garbage(found: findings.GarbageCollection, words: Words) -> str:
    share = f"{100 * found.share:.0f} % of {words.vocabulary.task} time"
    text = f"garbage collection took {share} in {found.stage.id} {found.stage.name}"
    return f"{text}, and 10 % or more in {counted(found.other_stages, 'other')}" if found.other_stages else text


@CORE.of(findings.CacheMissTime)
def kept(found: findings.CacheMissTime, words: Words) -> str:
    vocabulary = words.vocabulary
    text = (
        f"cache misses: {found.missed} of {found.tasks} {vocabulary.tasks} of {found.stage.id} {found.stage.name} read"
        f" data again that {vocabulary.workers} should have cached in memory"
    )
    if not found.other_stages:
        return text
    return f"{text}; so did {counted(found.other_missed, vocabulary.task)} in {counted(found.other_stages, 'other')}"


# While no task ran ----------------------------------------------------------------------------------------------------


@CORE.of(findings.NoScope)
def no_scope(_found: findings.NoScope, words: Words) -> str:
    none = " and ".join(f"no {each}" for each in (words.vocabulary.scope, *words.vocabulary.scopes[1:]))
    return f"{none} ran between two of them: the program itself"


@CORE.of(findings.AtStart)
def at_start(_found: findings.AtStart, words: Words) -> str:
    return f"the start, before the first {words.vocabulary.scope}: of the framework and of the program"


@CORE.of(findings.AtEnd)
def at_end(_found: findings.AtEnd, words: Words) -> str:
    return f"the end, after the last {words.vocabulary.scope}"


@CORE.of(findings.Driver)
def driver(found: findings.Driver, words: Words) -> str:
    vocabulary = words.vocabulary
    doing = f" ({vocabulary.driver_work})" if vocabulary.driver_work else ""
    unknown = "" if found.unknown_ms is None else f"; {lasting(found.unknown_ms)} of that is waiting or unknown"
    return f"the {vocabulary.driver} alone{doing}, while no {vocabulary.task} ran{unknown}"


@CORE.of(findings.Committing)
def committing(found: findings.Committing, words: Words) -> str:
    others = f"; so did {found.others} more" if found.others else ""
    after = f"after its last {words.vocabulary.task}, which wrote output"
    return f"{found.scope} continued for {lasting(found.longest_ms)} {after}{others}"


@CORE.of(findings.NoWorker)
def no_worker(found: findings.NoWorker, words: Words) -> str:
    vocabulary = words.vocabulary
    if not found.ever_came:
        waited = f"{vocabulary.stages} waited and no {vocabulary.task} ran"
        return f"no {vocabulary.worker} ever started: {waited}"
    text = f"waiting for {vocabulary.workers}: none was available"
    if found.first_worker_ms is not None:
        text += f"; the first was ready after {lasting(found.first_worker_ms)}"
    if found.lost is not None:
        text += f"; {lasting(found.since_lost_ms)} of that after a loss: {_loss(found.lost, words)}"
    return text


# Losses ---------------------------------------------------------------------------------------------------------------


@CORE.of(findings.LostWorkers)
def lost_workers(found: findings.LostWorkers, words: Words) -> str:
    vocabulary, count = words.vocabulary, len(found.lost.workers)
    were = "was" if count == 1 else "were"
    text = f"{count} of {counted(found.workers, vocabulary.worker)} {were} lost: {_loss(found.lost, words)}"
    if found.redone_tasks:
        redone = counted(found.redone_tasks, vocabulary.task)
        text += f"; {redone} ran again (their first attempts took {lasting(found.recomputed_ms)})"
    return f"{text}; after that, fewer {vocabulary.slots} were left" if found.short_ms > 0 else text


def explained(reason: str | None) -> str:
    """The reason from the log, or that the log does not state one."""
    return reason or "the log gives no reason"


def _loss(lost: findings.Loss, words: Words) -> str:
    """Which workers were lost, when and why."""
    shown = ", ".join(lost.workers[:_LOST_SHOWN]) + (" …" if len(lost.workers) > _LOST_SHOWN else "")
    one = len(lost.workers) == 1
    who = words.vocabulary.worker if one else words.vocabulary.workers
    came = "it started" if one else "they started (median)"
    return f"{who} {shown} ended {lasting(lost.lived_ms)} after {came} ({explained(lost.reason)})"


@CORE.of(findings.Wasted)
def wasted(found: findings.Wasted, words: Words) -> str:
    unit = words.vocabulary.task
    reasons = "; ".join(
        each.reason if len(found.reasons) == 1 else f"{each.tasks} × {each.reason}"
        for each in found.reasons[:_REASONS_SHOWN]
    )
    text = f"{counted(found.tasks, f'{found.status} {unit}')} ran for {lasting(found.task_ms)} of {unit} time"
    return f"{text}: {reasons}" if reasons else text


# Advice ---------------------------------------------------------------------------------------------------------------


@CORE.of(todo.MoreTasks)
def more_tasks(_advice: todo.MoreTasks, words: Words) -> str:
    vocabulary = words.vocabulary
    return f"more, smaller {vocabulary.tasks} would use the idle {vocabulary.slots}"


@CORE.of(todo.SmallerTasks)
def smaller_tasks(_advice: todo.SmallerTasks, words: Words) -> str:
    return f"smaller {words.vocabulary.tasks} would shorten the last wave"


@CORE.of(todo.FewerTasks)
def fewer_tasks(_advice: todo.FewerTasks, words: Words) -> str:
    return f"fewer, larger {words.vocabulary.tasks}"


@CORE.of(todo.SpreadInput)
def spread_input(_advice: todo.SpreadInput, words: Words) -> str:
    return f"distribute the input more evenly over the {words.vocabulary.tasks}"


@CORE.of(todo.RelaxPlacement)
def relax_placement(_advice: todo.RelaxPlacement, words: Words) -> str:
    vocabulary = words.vocabulary
    spread = f"spread their data over all {vocabulary.workers}"
    return f"let {vocabulary.tasks} run on any free {vocabulary.slot}, or {spread}"


@CORE.of(todo.InspectTaskWaits)
def inspect_task_waits(_advice: todo.InspectTaskWaits, words: Words) -> str:
    return f"find out why {words.vocabulary.tasks} waited while {words.vocabulary.slots} were free"


@CORE.of(todo.FitCache)
def fit_cache(_advice: todo.FitCache, words: Words) -> str:
    vocabulary = words.vocabulary
    more = f"more memory per {vocabulary.worker} or more {vocabulary.workers}"
    return f"{more}, so that all cached data fits"


@CORE.of(todo.CompareHosts)
def compare_hosts(_advice: todo.CompareHosts, _words: Words) -> str:
    return "compare the node it ran on with other nodes"


@CORE.of(todo.InspectComputation)
def inspect_computation(_advice: todo.InspectComputation, _words: Words) -> str:
    return "check which of its rows are expensive to compute"


@CORE.of(todo.RecordSamples)
def record_samples(_advice: todo.RecordSamples, _words: Words) -> str:
    return "record stack samples to see what it did"


@CORE.of(todo.KeepWorkers)
def keep_workers(_advice: todo.KeepWorkers, words: Words) -> str:
    return f"keep {words.vocabulary.workers} alive between runs"


@CORE.of(todo.StartWorkersSooner)
def start_workers_sooner(_advice: todo.StartWorkersSooner, words: Words) -> str:
    workers = words.vocabulary.workers
    return f"make the cluster manager start {workers} sooner, or use one application for several runs"


@CORE.of(todo.FreeClusterCapacity)
def free_cluster_capacity(_advice: todo.FreeClusterCapacity, words: Words) -> str:
    worker = words.vocabulary.worker
    return f"check that the cluster has enough free cores and memory for one {worker}"


@CORE.of(todo.InspectProgram)
def inspect_program(advice: todo.InspectProgram, words: Words) -> str:
    scope = words.vocabulary.scope
    if advice.when == "start":
        return f"start less often: keep one application for several jobs, and do less before the first {scope}"
    if advice.when == "end":
        return f"check what the program does after its last {scope}"
    return f"check what the program does between its {plural(scope)}"


@CORE.of(todo.InspectDriver)
def inspect_driver(_advice: todo.InspectDriver, words: Words) -> str:
    vocabulary = words.vocabulary
    return f"check what the {vocabulary.driver} does while no {vocabulary.task} runs"


@CORE.of(todo.MoreMemory)
def more_memory(advice: todo.MoreMemory, words: Words) -> str:
    text = f"more memory per {words.vocabulary.worker}"
    return f"{text}, or fewer {words.vocabulary.slots}" if advice.fewer_slots else text


@CORE.of(todo.AvoidSpilling)
def avoid_spilling(advice: todo.AvoidSpilling, words: Words) -> str:
    vocabulary = words.vocabulary
    if advice.delegated:
        return f"more memory for the processes that compute for {vocabulary.tasks}, or smaller {vocabulary.tasks}"
    return f"more memory per {vocabulary.worker}, fewer {vocabulary.slots}, or smaller {vocabulary.tasks}"


@CORE.of(todo.AvoidExhaustion)
def avoid_exhaustion(advice: todo.AvoidExhaustion, words: Words) -> str:
    vocabulary = words.vocabulary
    task_word, slot_word, worker = vocabulary.tasks, vocabulary.slots, vocabulary.worker
    return {
        "container": f"a container limit for each {worker} that is larger than its heap needs, or fewer {slot_word}",
        "heap": f"more memory per {worker}, fewer {slot_word}, or smaller {task_word}",
        "device": f"fewer concurrent {task_word} per device, or smaller {task_word}",
        "delegate": f"more memory for the processes that compute for {task_word}, or smaller {task_word}",
        "killed": f"find out what killed it; if memory was the reason, fewer {slot_word} or a larger container",
    }[advice.exhausted]


@CORE.of(todo.MoreCpu)
def more_cpu(advice: todo.MoreCpu, words: Words) -> str:
    vocabulary = words.vocabulary
    fewer = {
        "same": "",
        "fewer": f"fewer {vocabulary.slots}",
        "fewer-than-cores": f"fewer {vocabulary.slots} than cores",
    }
    helps = [
        f"a larger CPU limit for each {vocabulary.worker}" if advice.larger_limit else "",
        "machines without other workloads" if advice.own_machines else "",
        fewer[advice.slots],
    ]
    return either([each for each in helps if each])


@CORE.of(todo.InspectHost)
def inspect_host(advice: todo.InspectHost, words: Words) -> str:
    device = words.device_name(advice.resource)
    return f"check {advice.host}: a slow or shared {device}, other jobs, a throttled instance"


@CORE.of(todo.InspectDevice)
def inspect_device(advice: todo.InspectDevice, _words: Words) -> str:
    waits = {
        DISK: "many small files, metadata, a slow or shared disk",
        NET: "connections, retries, DNS lookups, a slow service or worker",
    }.get(advice.resource, "many small transfers, or latency within them")
    return f"find out what it waits for, because it is not data volume: {waits}"


@CORE.of(todo.ReadWorkerLog)
def read_worker_log(advice: todo.ReadWorkerLog, words: Words) -> str:
    where = advice.worker if advice.host is None else f"{advice.worker} on {advice.host}"
    return f"read the last lines of the log of {words.vocabulary.worker} {where}"


@CORE.of(todo.InspectEndedTasks)
def inspect_ended_tasks(advice: todo.InspectEndedTasks, _words: Words) -> str:
    return f"find out why they {'failed' if advice.status == 'failed' else 'were killed'}"
