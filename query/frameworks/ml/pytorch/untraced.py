"""The run without its profiler: what tracing cost the host is taken out, and the accelerator's work is moved with it.

A profiler records each operator, each Python function and each call of the device's runtime on the thread that makes
it, so it slows the host (with stacks up to 2.3 times) and leaves kernels as long as they are.  A traced run is then
limited by a host that the real run does not have.  So the times of a single process with an accelerator are computed
again, in the order of the trace:

- the host does what it did, less the cost of each recorded event;
- a kernel begins when it is launched and its stream is free, after the kernel of another stream that it waited for;
- a call that synchronises returns when the work that it waits for has ended; a launch that waited because the queue of
  launches was full does not, because that delays no step;
- a batch of loader processes arrives as long after the one before it as it did: these processes are not traced.

The run begins with an idle accelerator, so work of steps before the first is left out.  A first step that took longer
than each later one is left out too: it has the profiler's own start.

The cost of an event differs by machine and moment (the same host is a third faster a minute later), and so does a
launch of the same trace.  So costs are shares of the trace's own launches: EVENT_SHARE of a launch for an operator and
for a Python function, CALL_SHARE for a call of the runtime.  `python -m lab.score.gpu` fits and scores them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.pytorch import ranges
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.pytorch.names import MODULE, is_collective, is_synchronizing
from crystalperf.query.frameworks.ml.pytorch.outermost import inputs
from crystalperf.query.predict.interval import of_ends

EVENT_SHARE = 0.55
"""Cost of a recorded operator or Python function, as a share of a launch of the same trace."""

_MOST_SHARE = 0.75
"""The highest share of single traces."""

_NEARLY = 0.9
"""Share of a step from which a busy accelerator may be what limits it."""

_CLEARLY = 0.02
"""Share of a step by which the host gets ahead of an accelerator that limits it."""

_AHEAD = 0.5
"""Maximum lead of the host, as a share of the steps: the more slack launches have, the less does the host matter."""

CALL_SHARE = 0.1
"""Cost of a recorded call of the device's runtime, as a share of a launch."""

_LAUNCH_QUANTILE = 0.25
"""Launches wait if the queue is full, so a fast one shows what the host can do."""

_MOST_LAUNCH_US = 20.0
"""Maximum time of a launch that did not wait: those of the lab's two GPUs take 4 to 9 µs."""

_LEAST_SHARE = 0.25
"""Minimum share of a traced time of the host that remains without the profiler."""

_AHEAD_LAUNCHES = 100
"""Pending launches of a trace from which a long launch was waiting for space.  CUDA's queue has 1024 entries, but no
trace has the kernels that were launched before it; the time of a host that is that far ahead does not matter."""

_WAITED_US = 20.0
"""A shorter launch did not wait; a longer gap of a stream has a cause of its own."""

_NEXT_US = 3.0
"""Maximum time that an accelerator needs from one kernel to the next."""

_COPIED_US = 100.0
"""Maximum time between the end of a copy and the return of a call that waits for it."""

_BATCH_US = 1000.0
"""A shorter request for a batch found it ready."""

_FIRST_STEP = 1.15
"""How much longer than each later step a first step is that has the profiler's own start."""

_ROUNDS = 3
"""How often the recorded steps are placed: the first rounds bring host and device into their steady state."""

_LAUNCHES = regex(r"LaunchKernel")
_TO_HOST = regex(r"DtoH(?!.*Pinned)")
"""Copies that their call waits for; all others it only launches."""

_ALL_STREAMS = regex(r"DeviceSynchronize|ContextSynchronize|deviceSynchronize")


@frozen
class Untraced:
    """A process without its profiler; all times are of a mean step in its steady state, ms."""

    traced_step_ms: float
    step_ms: float
    busy_ms: float
    """At least one operation ran on the accelerator."""
    unsynchronised_ms: float
    """The step if no call waited for the accelerator."""
    launches: float
    """Kernels and copies."""
    synchronisations: float
    """Calls that waited for it."""
    step_low_ms: float
    step_high_ms: float
    """The 90 % range of the step (ranges.py)."""
    host_term: float
    """Half the width of the 90 % range of the logarithm of the host's time: its speed, and what the profiler cost."""
    place: str | None
    """The program's line with the most of these calls."""

    def properties(self) -> dict[str, str]:
        """The same for the run file."""
        found = {name: f"{value:.6g}" for name, value in asdict(self).items() if isinstance(value, float)}
        return found | ({"synchronised_at": self.place} if self.place else {})


@frozen
class _Pace:
    """Factors on the time of the host, of loader processes for a batch, and of kernels."""

    host: float = 1.0
    loaders: float = 1.0
    device: float = 1.0


_RECORDED = _Pace()


def _paces() -> dict[str, tuple[_Pace, ...]]:
    """Both ends of each term of the range, but for the cost of an event."""
    return {
        name: tuple(replace(_RECORDED, **{name: math.exp(sign * getattr(ranges.FITTED, name))}) for sign in (-1, 1))
        for name in ("host", "loaders", "device")
    }


@dataclass(slots=True)
class _Kernel:
    """An operation of the device: its stream, its call, and how it began, all as recorded, µs."""

    ran: Ran
    stream: tuple[str, str]
    call: Ran
    gap: float
    """After the later of its launch and its stream's last operation."""
    order: float
    """When its call was made."""
    after: _Kernel | None = None
    """The operation of another stream that it waited for."""
    start: float = 0.0
    end: float = 0.0


@dataclass(slots=True)
class _Action:
    """A moment at which the host and the device meet: a launch, a synchronisation or a batch, as recorded, µs."""

    start: float
    end: float
    launches: list[_Kernel] = field(default_factory=list)
    waits: bool = False
    batch: bool = False
    full: bool = False
    asked: bool = True
    """Whether a wait lasts until the work has ended."""
    all_streams: bool = False
    rest: float = 0.0
    """From the end of the work that it waited for to its return."""


@frozen
class _Steps:
    """Parts of a process that are placed: its kernels and where they meet the host, with the cost of a launch, µs."""

    process: Process
    launch_us: float
    begin: float
    end: float
    kernels: Sequence[_Kernel]
    actions: Sequence[_Action]

    def place(self, share: float, pace: _Pace = _RECORDED, *, asked: bool = True) -> tuple[_Clock, _Placed]:
        """Place them with costs of `share` of a launch for an event; times stay in the kernels.

        Without `asked` no call waits for the accelerator.
        """
        clock = _Clock(self.process, self.begin, self.launch_us, share, pace)
        these = self.actions if asked else [replace(each, asked=False) for each in self.actions]
        return clock, _place(clock, these, self.begin, self.end)


def _steps_of(process: Process) -> _Steps | None:
    """See retime."""
    process.steps.sort(key=lambda each: each[1:])
    if not process.steps or not process.streams or not process.has_host or _has_collectives(process):
        return None
    launch_us = _launch_us(process)
    if launch_us is None:
        return None
    _drop_first_step(process)
    begin, end = process.steps[0][1], process.steps[-1][2]
    kernels = _kernels(process, begin, end)
    return _Steps(process, launch_us, begin, end, kernels, _actions(process, kernels, begin, end)) if kernels else None


def steps_at(process: Process, shares: Sequence[float]) -> list[float]:
    """The mean step for each share of a launch that an event costs, ms; empty where retime does nothing."""
    found = _steps_of(process)
    return [] if found is None else [found.place(each)[1].period / len(process.steps) / 1e3 for each in shares]


def retime(process: Process) -> Untraced | None:
    """Replace the times of a process by those without the profiler; None if it has no accelerator or other ranks.

    A trace without steps, without launches or without operators stays as it is.
    """
    steps = _steps_of(process)
    if steps is None:
        return None
    share, kernels = EVENT_SHARE, steps.kernels
    placed, busy_us = steps.place(share)[1], _busy(kernels)
    if busy_us >= _NEARLY * placed.period and placed.grown <= _CLEARLY * placed.period:
        share = _MOST_SHARE  # both limit the steps within the accuracy of the costs: the accelerator does if it can
    alone = steps.place(share, asked=False)[1]
    costly = [steps.place(EVENT_SHARE + sign * ranges.FITTED.cost) for sign in (-1, 1)]
    paced = {name: [steps.place(share, each)[1].period for each in ends] for name, ends in _paces().items()}
    paced["cost"] = [each.period for _, each in costly]
    clock, placed = steps.place(share)  # last, because placing leaves its times in the kernels
    (low, high), _ = of_ends(placed.period, paced)
    count, busy_us, asked = len(process.steps), _busy(kernels), [each for each in steps.actions if each.waits]
    found = Untraced(
        (steps.end - steps.begin) / count / 1e3,
        placed.period / count / 1e3,
        busy_us / count / 1e3,
        alone.period / count / 1e3,
        len(kernels) / count,
        len(asked) / count,
        low / count / 1e3,
        high / count / 1e3,
        math.hypot(ranges.FITTED.host, abs(math.log(costly[0][0].worked / costly[1][0].worked)) / 2),
        _place_of(process, asked),
    )
    _move(process, clock, placed, kernels, steps.begin, steps.end)
    return found


def _busy(kernels: Sequence[_Kernel]) -> float:
    """How long at least one kernel ran, or the accelerator went on from one to the next, µs."""
    total, until = 0.0, float("-inf")
    for start, end in sorted((each.start - min(each.gap, _NEXT_US), each.end) for each in kernels):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total


def _place_of(process: Process, asked: Sequence[_Action]) -> str | None:
    """The innermost function of the program that most of these calls are in."""
    count: Counter[str] = Counter()
    for thread in process.threads.values():
        functions = sorted((each.start, each.end, each.name) for each in thread.functions)
        starts = [start for start, _, _ in functions]
        for each in asked:
            place = bisect_right(starts, each.start) - 1
            while place >= 0 and functions[place][1] < each.end:
                place -= 1
            if place >= 0 and not functions[place][2].startswith(MODULE):
                count[functions[place][2]] += 1
    return count.most_common(1)[0][0] if count else None


def _has_collectives(process: Process) -> bool:
    names = {each.name for stream in process.streams.values() for each in stream}
    return any(each.collectives for each in process.threads.values()) or any(map(is_collective, names))


def _launch_us(process: Process) -> float | None:
    """The time of a launch that did not wait."""
    calls = [
        each.end - each.start
        for thread in process.threads.values()
        for each in thread.calls
        if _LAUNCHES.search(each.name)
    ]
    return min(float(np.quantile(calls, _LAUNCH_QUANTILE)), _MOST_LAUNCH_US) if calls else None


def _drop_first_step(process: Process) -> None:
    """Leave out a first step of a loop without waits for input that took longer than each later one."""
    took = [end - start for _, start, end in process.steps]
    if len(took) < 3 or took[0] <= _FIRST_STEP * max(took[1:]):
        return
    if any(each.end - each.start > _BATCH_US for thread in process.threads.values() for each in inputs(thread)):
        return
    del process.steps[0]


def _kernels(process: Process, begin: float, end: float) -> list[_Kernel]:
    """The device's operations that were launched within the steps, in the order of their recorded starts."""
    calls = {
        each.correlation: each
        for thread in process.threads.values()
        for each in thread.calls
        if each.correlation is not None
    }
    every = sorted(
        ((ran.start, ran.end, stream, ran) for stream, of in process.streams.items() for ran in of),
        key=lambda each: each[:3],
    )
    ends = sorted((one[1], position) for position, one in enumerate(every))
    found: list[_Kernel | None] = []
    free: dict[tuple[str, str], float] = {}
    for start, until, stream, ran in every:
        call = calls.get(ran.correlation) if ran.correlation is not None else None
        last = free.get(stream, float("-inf"))
        free[stream] = max(last, until)
        if call is None or not begin <= call.start < end:
            found.append(None)
            continue
        launched = call.start if call.end > start and _TO_HOST.search(ran.name) else min(call.end, start)
        ready = max(last, launched)
        kernel = _Kernel(ran, stream, call, min(max(start - ready, 0.0), _WAITED_US), call.start)
        if start - ready > _WAITED_US:
            first, past = (bisect_left(ends, (start - _WAITED_US, -1)), bisect_right(ends, (start + 1.0, len(every))))
            for _, position in reversed(ends[first:past]):
                if every[position][2] != stream and position < len(found):
                    kernel.after, kernel.gap = found[position], max(start - every[position][1], 0.0)
                    break
            if kernel.after is None:
                kernel.gap = start - ready
        found.append(kernel)
    return [each for each in found if each is not None]


def _actions(process: Process, kernels: Sequence[_Kernel], begin: float, end: float) -> list[_Action]:
    """Where host and device meet, in the order of the host's time."""
    launched: dict[int, list[_Kernel]] = {}
    for each in kernels:
        launched.setdefault(id(each.call), []).append(each)
    began = sorted(each.start for stream in process.streams.values() for each in stream)  # of earlier steps too
    called = sorted(each.call.start for each in kernels)
    ended = sorted(each.ran.end for each in kernels)
    found = []
    for thread in process.threads.values():
        for call in thread.calls:
            if not begin <= call.start < end:
                continue
            own = launched.get(id(call), [])
            waits = is_synchronizing(call.name) or (
                "Memcpy" in call.name
                and any(
                    _TO_HOST.search(one.ran.name)
                    and one.ran.start < call.end
                    and abs(call.end - one.ran.end) <= _COPIED_US
                    for one in own
                )
            )
            later = len(called) - bisect_left(called, call.start)
            pending = len(began) - bisect_right(began, call.start) - later
            full = bool(own) and not waits and call.end - call.start > _WAITED_US and pending >= _AHEAD_LAUNCHES
            if own or waits:
                every = bool(_ALL_STREAMS.search(call.name))
                last = ended[place - 1] if (place := bisect_right(ended, call.end)) else call.start
                rest = call.end - max(last, call.start)
                found.append(_Action(call.start, call.end, own, waits, full=full, all_streams=every, rest=rest))
        found += [
            _Action(each.start, each.end, batch=True)
            for each in inputs(thread)
            if begin <= each.start < end and each.end - each.start > _BATCH_US and "_SingleProcess" not in each.name
        ]
    return sorted(found, key=lambda each: (each.end, each.start))


class _Clock:
    """The host's time: traced µs to µs without the profiler, by the points that have been placed so far."""

    def __init__(self, process: Process, begin: float, launch_us: float, event_share: float, pace: _Pace) -> None:
        calls = [each.start for thread in process.threads.values() for each in thread.calls]
        starts = np.concatenate([np.asarray(process.recorded), np.asarray(calls, dtype=np.float64)])
        costs = np.repeat([event_share * launch_us, CALL_SHARE * launch_us], [len(process.recorded), len(calls)])
        order = np.argsort(starts, kind="stable")
        self._starts: list[float] = starts[order].tolist()
        self._costs: list[float] = [0.0, *np.cumsum(costs[order]).tolist()]
        self.traced, self.now = [begin], [0.0]
        self.launch_us, self.pace = launch_us, pace
        self.worked = 0.0
        """How long the host worked, without its waits, in all rounds."""

    def moments(self, traced: Sequence[float]) -> NDArray[np.float64]:
        """Traced moments of the last round without the profiler."""
        return np.interp(np.asarray(traced, dtype=np.float64), self.traced, self.now)

    def restart(self, begin: float) -> float:
        """Begin the same traced time again where the host is now; returns that moment."""
        self.traced, self.now = [begin], [self.now[-1]]
        return self.now[0]

    def _cost(self, since: float, until: float) -> float:
        return self._costs[bisect_left(self._starts, until)] - self._costs[bisect_left(self._starts, since)]

    def work(self, until: float) -> float:
        """Let the host work up to a traced moment; returns the moment without the profiler."""
        since = self.traced[-1]
        if until <= since:
            return self.now[-1]
        length = until - since
        took = self.pace.host * max(length - self._cost(since, until), _LEAST_SHARE * length)
        self.worked += took
        self.traced.append(until)
        self.now.append(self.now[-1] + took)
        return self.now[-1]

    def jump(self, traced: float, now: float) -> None:
        """Let the host wait: the traced wait ended at `traced`, the wait without the profiler ends at `now`."""
        if traced > self.traced[-1]:
            self.traced.append(traced)
            self.now.append(max(now, self.now[-1]))


@dataclass
class _Device:
    """The device while work is placed: when each stream is free.

    The host may be ahead of it by any number of launches: a full queue delays the host and not the steps.
    """

    pace: float = 1.0
    free: dict[tuple[str, str], float] = field(default_factory=dict)
    last_stream: tuple[str, str] | None = None

    def idle_at(self) -> float:
        """When all of its work has ended."""
        return max(self.free.values(), default=float("-inf"))

    def launch(self, kernel: _Kernel, moment: float) -> None:
        """Place a kernel that is launched at a moment."""
        last = self.free.get(kernel.stream, float("-inf"))
        ready = max(moment, last, kernel.after.end if kernel.after is not None else moment)
        kernel.start = ready + kernel.gap
        kernel.end = kernel.start + self.pace * (kernel.ran.end - kernel.ran.start)
        self.free[kernel.stream] = kernel.end
        self.last_stream = kernel.stream

    def done(self, moment: float, all_streams: bool) -> float:
        """When the work has ended that a synchronisation at a moment waits for."""
        streams = list(self.free) if all_streams or self.last_stream is None else [self.last_stream]
        return max([moment, *(self.free.get(each, moment) for each in streams)])


@frozen
class _Placed:
    """The last round, µs: when the host began it, and for how long the device still worked on earlier ones."""

    start: float
    backlog: float
    grown: float
    """How much further the device fell behind in it."""
    period: float
    """How much later host and device were both done with it than with the round before."""


def _place(clock: _Clock, actions: Sequence[_Action], begin: float, end: float) -> _Placed:
    """Place the steps' work one after the other until it is in its steady state; returns the last round of it."""
    device, batch = _Device(clock.pace.device), _Batches(end - begin, clock.pace.loaders)
    done = backlog = 0.0
    for _ in range(_ROUNDS):
        before, earlier = done, backlog
        start, backlog = clock.restart(begin), max(device.idle_at() - clock.now[0], 0.0)
        for each in actions:
            if each.batch:
                arrived = clock.work(each.start)
                clock.jump(each.end, batch.ready(each, arrived))
                continue
            moment = clock.work(each.start if each.full or each.waits else each.end)
            for kernel in each.launches:
                device.launch(kernel, moment)
            if each.waits and each.asked:
                moment = device.done(moment, each.all_streams)
            if each.waits or each.full:
                clock.jump(
                    each.end, moment + (each.rest if each.waits else min(each.end - each.start, clock.launch_us))
                )
        clock.work(end)
        batch.next_round()
        done = max(clock.now[-1], device.idle_at())
    return _Placed(start, backlog, backlog - earlier, done - before)


@dataclass
class _Batches:
    """Batches that other processes make: each as long after the one before it as it was recorded, µs."""

    period: float
    """Of the steps, as recorded."""
    pace: float = 1.0
    last: tuple[float, float] | None = None
    shift: float = 0.0

    def ready(self, request: _Action, arrived: float) -> float:
        """When the batch of a request is there that the host makes at a moment."""
        recorded = request.end + self.shift
        own = request.end - request.start
        if self.last is None:
            moment = arrived + self.pace * own
        else:
            moment = max(arrived, self.last[1] + self.pace * (recorded - self.last[0]))
        self.last = recorded, moment
        return moment

    def next_round(self) -> None:
        """The same batches again."""
        self.shift += self.period


def _move(
    process: Process, clock: _Clock, placed: _Placed, kernels: Sequence[_Kernel], begin: float, end: float
) -> None:
    """Move all events of the process to their times in the last round, which begins when they began.

    An accelerator that limits the steps is behind the host.  So the round begins when the accelerator begins its work,
    and the host is ahead by a lead: it launched the first of that work before, and in the end does as much for the
    steps after these.  Then it waits until the accelerator has done its work.
    """
    device_zero = placed.start + placed.backlog
    length = clock.now[-1] - placed.start
    called = clock.moments([each.call.end for each in kernels]) - placed.start
    began = np.asarray([each.start for each in kernels]) - device_zero
    needed = max(0.0, float((called - began).max()))
    lead = min(max(needed, _AHEAD * length), placed.backlog)
    for kernel in kernels:
        kernel.ran.start, kernel.ran.end = kernel.start - device_zero, kernel.end - device_zero
    ours = {id(each.ran) for each in kernels}
    for stream in process.streams.values():
        stream[:] = [each for each in stream if id(each) in ours]
    for events in (events for thread in process.threads.values() for events in thread.events()):
        inside = [each for each in events if begin <= each.start < end]
        starts, ends = (clock.moments(times) - placed.start - lead for times in _times(inside))
        for each, start, until in zip(inside, starts.tolist(), ends.tolist(), strict=True):
            each.start, each.end = start, min(max(until, start), length)
        events[:] = [part for each in inside for part in _parts(each, length)]
    _mark_steps(process, clock, placed, kernels, length)
    for events in process.events():
        for each in events:
            each.start, each.end = each.start + begin, each.end + begin
    process.steps = [(number, since + begin, until + begin) for number, since, until in process.steps]


def _times(events: Sequence[Ran]) -> tuple[list[float], list[float]]:
    return [each.start for each in events], [each.end for each in events]


def _parts(each: Ran, length: float) -> Iterator[Ran]:
    """An event, and for its time before 0 the same in the steps after these, which launches nothing of these."""
    if each.start >= 0:
        yield each
        return
    yield replace(each, end=min(each.end, 0.0))
    if each.end > 0:
        yield replace(each, start=0.0, correlation=None)
    yield replace(each, start=each.start + length, end=min(each.end, 0.0) + length, correlation=None)


def _mark_steps(process: Process, clock: _Clock, placed: _Placed, kernels: Sequence[_Kernel], length: float) -> None:
    """Let each step end when host and device have done its work, and the host wait for that in the end."""
    until, marks = 0.0, []
    recorded = sorted(kernels, key=lambda each: each.order)
    position = 0
    done = 0.0
    for number, _, end in process.steps:
        while position < len(recorded) and recorded[position].order < end:
            done = max(done, recorded[position].ran.end)
            position += 1
        moment = max(float(clock.moments([end])[0]) - placed.start, done, until)
        marks.append((number, until, moment))
        until = moment
    process.steps = marks
    main = process.main_thread()
    if main is not None and until > length:
        process.threads[main].calls.append(Ran(length, until, "cudaDeviceSynchronize"))
