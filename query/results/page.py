"""The values of a page.  Times are ms since application start, lengths are ms; columns of a table have one length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from crystalperf.query.results.answers import Parts, Verdict
from crystalperf.query.results.kinds import Basis
from crystalperf.query.trace.vocabulary import SettingUnit

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Texts = tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """The one unit that all times of the page are written in: a number of ms over `ms`, with so many decimals."""

    name: str
    ms: float
    decimals: int


@dataclass(frozen=True)
class SaidRecommendation:
    """One thing to change: the sentence, what it saves, '' where that is not known, and the lines to paste."""

    text: str
    saving: str
    lines: Texts


@dataclass(frozen=True)
class SaidWhatIf:
    """One of the usual questions and its answer; `range` and `change` are '' where there is none."""

    question: str
    setting: str
    runtime: str
    change: str
    range: str


@dataclass(frozen=True)
class SaidFinding:
    """What cost time, at most how much, how that is known, and what to do."""

    cost: str
    what: str
    basis: Basis
    advice: str


@dataclass(frozen=True)
class SaidTable:
    """Rows of texts under their heads; the first two are an id and a name.  `note` says what the heads mean."""

    heads: Texts
    rows: tuple[Texts, ...]
    note: str


@dataclass(frozen=True)
class Said:
    """What the terminal says of the run, sentence by sentence, in the framework's words; '' where there is nothing.

    facts          name, framework and version, workers and lanes, duration
    outcome        how it ended, the most important first; of a flow of records how many it takes
    left_out       stretches without work that no figure has in it
    headline       what holds the run up
    rests_on       how much of the samples is in code that an index has
    nothing_to_do  stands for recommendations where there are none
    other          what the time on no resource was, the first word without its capital
    same           the usual questions that change nothing
    unknown        those that are not answered, a sentence each
    stations       of a flow of records its groups: how many records each takes, and how busy that keeps it
    check          how far off the model is where nothing changes, and what a range is
    missing        what reading the input lost, and `unseen` what could not be seen
    told           what the framework measured of itself
    next           what to type next
    words          how the framework calls worker, workers, lane, lanes, group, groups, unit, units, coordinator, scope
    devices        what a reader knows each resource by, and `other`
    causes         what time on no resource was, by cause
    how            how a figure of a what-if is known: recorded, exact (`predict` says it), between (two such answers),
                   refused, unknown (no answer of the page is near)
    """

    title: str
    facts: Texts
    outcome: Texts
    left_out: str
    headline: str
    unmodelled: str
    rests_on: str
    recommendations: tuple[SaidRecommendation, ...]
    nothing_to_do: str
    other: str
    what_ifs: tuple[SaidWhatIf, ...]
    same: str
    unknown: Texts
    check: str
    findings: tuple[SaidFinding, ...]
    disagreements: Texts
    assumptions: Texts
    missing: Texts
    unseen: Texts
    told: Texts
    stations: SaidTable
    next: str
    figure: Figure
    words: Mapping[str, str]
    devices: Mapping[str, str]
    causes: Mapping[str, str]
    how: Mapping[str, str]


@dataclass(frozen=True)
class Point:
    """One setting of the grid and its answer, as `predict` gives it.

    ratios       new over recorded, in the order of the keys
    amounts      what that is in each setting's unit; None where the run does not tell what it had
    predicted_ms  None where the question is refused; then `refused` is the sentence, with the bound that is known
    resource_ms  of the predicted runtime, the time of its critical path on each resource, and `other`
    bottleneck   the resource with the most of it, or the cause (see Cause) of other time that would have more
    group_ms     the predicted length of each group of Grid.groups; empty where the question is refused
    """

    setting: str
    ratios: Floats
    amounts: tuple[float | None, ...]
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None
    bound_ms: tuple[float | None, float | None] | None
    refused: str
    bottleneck: str | None
    resource_ms: Parts
    group_ms: tuple[float | None, ...]


@dataclass(frozen=True)
class Curve:
    """One setting varied alone, the least first; the recorded run lies between the points, at ratio 1.

    key        the setting as `predict` knows it, in the framework's word
    label      what it is: slots of each worker
    recorded   what the run had, in `unit`; None where it does not tell
    knee       the position of the last point that is still worth it; None where none is, or no rule can say
    knee_said  the sentence
    """

    key: str
    label: str
    unit: SettingUnit
    recorded: float | None
    points: tuple[Point, ...]
    knee: int | None
    knee_said: str


@dataclass(frozen=True)
class Pair:
    """Two settings varied together."""

    keys: tuple[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Grid:
    """Every what-if that the page can answer by itself.

    recorded_ms  the runtime that was recorded; a prediction is compared with it
    groups       ids of the groups whose lengths the points have, and `group_ms` what these were
    coarser      why there are fewer settings than there might be; '' where there are all
    command      what answers any other setting, with {run} and {settings} to be filled in
    """

    recorded_ms: float
    bottleneck: str
    resource_ms: Parts
    groups: Texts
    group_ms: Floats
    curves: tuple[Curve, ...]
    pairs: tuple[Pair, ...]
    coarser: str
    command: str


@dataclass(frozen=True)
class Places:
    """Workers, a row each, also a coordinator that ran units; `end_ms` is None where one lived to the end."""

    id: Texts
    host: tuple[str | None, ...]
    start_ms: Ints
    end_ms: tuple[int | None, ...]
    reason: tuple[str | None, ...]


@dataclass(frozen=True)
class Bars:
    """Units, a row each, by lane and start.

    lane      row of Timeline.lanes
    group     row of Timeline.groups
    status    row of Timeline.statuses
    resource  position of the resource, or `other` behind them all, that most of its time was on
    count     units that a row stands for; empty where that is one each
    """

    lane: Ints
    start_ms: Ints
    length_ms: Ints
    group: Ints
    status: Ints
    resource: Ints
    count: Ints


@dataclass(frozen=True)
class Stretches:
    """Intervals with a name, a row each."""

    id: Texts
    name: Texts
    start_ms: Floats
    end_ms: Floats


@dataclass(frozen=True)
class Timeline:
    """What ran where and when.

    lanes        by lane its worker, a row of `workers`; the lanes of a worker follow each other
    groups       ids of all groups that ran, by Bars.group; `group_names` are what a user knows them by
    figure       the unit of its times, which may be longer than the answer's: a record takes ms, its run hours
    coordinator  intervals in which only the coordinator, or a transfer, moved its successors on
    pauses       stretches that no figure has in it: nothing was submitted
    coarsened    a sentence where some rows stand for several units, else ''
    """

    start_ms: float
    end_ms: float
    figure: Figure
    workers: Places
    lanes: Ints
    groups: Texts
    group_names: Texts
    statuses: Texts
    units: Bars
    coordinator: Stretches
    pauses: Stretches
    coarsened: str


@dataclass(frozen=True)
class Spread:
    """How a quantity lies on the units of a group: its values at Graph.quantiles of them."""

    duration_ms: Floats
    read_bytes: Floats


@dataclass(frozen=True)
class GraphNode:
    """A group, or an interval of the coordinator or a transfer.

    path_ms      how much of it is on the critical path
    resource_ms  of a group the time of its units, summed; of the others wall-clock
    units        of a group, else 0; `spread` how evenly they went, where they do the same
    """

    id: str
    kind: Literal["group", "coordinator", "transfer"]
    name: str
    scope: str | None
    start_ms: float
    end_ms: float
    path_ms: float
    resource_ms: Parts
    units: int
    spread: Spread | None


@dataclass(frozen=True)
class GraphScope:
    """A stretch of the run that a user has a name for."""

    id: str
    kind: str
    name: str
    parent: str | None
    start_ms: float
    end_ms: float | None
    status: str


@dataclass(frozen=True)
class PlanNode:
    """An operator of a scope's plan; `resource_ms` is unit time, None where none was given to it.

    `basis` says what gave it: samples, or what the framework itself timed.
    """

    scope: str
    node_id: int
    parent_id: int | None
    name: str
    detail: str
    groups: Texts
    resource_ms: Parts | None
    basis: str | None


@dataclass(frozen=True)
class Graph:
    """The execution DAG.  Edges are rows of (source, target), positions in `nodes`; kinds as in dependencies.

    `reduced` is a sentence where there are more groups or operators than are shown, else ''.
    """

    nodes: tuple[GraphNode, ...]
    source: Ints
    target: Ints
    edge_kind: Texts
    scopes: tuple[GraphScope, ...]
    operators: tuple[PlanNode, ...]
    quantiles: Floats
    reduced: str


@dataclass(frozen=True)
class Labels:
    """What indexes say of the functions that decide stacks, a row each.

    frame       row of Flames.frames
    index       the index that has it
    shares      its share of each resource, in the order of the run's resources
    confidence  probability that the largest share is the dominant resource; None where the index is not at hand
    code, documentation  the same shares by what its code says alone, and its documentation; empty where unknown
    """

    frame: Ints
    index: Texts
    shares: tuple[Floats, ...]
    confidence: tuple[float | None, ...]
    code: tuple[Floats, ...]
    documentation: tuple[Floats, ...]


@dataclass(frozen=True)
class Sampled:
    """Sampled time, a row each: the node of the tree where stacks end, for whom they worked, what that went to.

    group     row of Timeline.groups; -1 for the coordinator
    operator  row of Flames.operators; -1 where no frame names one
    resource_ms  a column for each resource, by the label of the function that decides
    waiting_ms   of stacks that wait and that nothing decides
    unknown_ms   of other stacks that nothing decides: no index has their code
    """

    node: Ints
    group: Ints
    operator: Ints
    resource_ms: Mapping[str, Floats]
    waiting_ms: Floats
    unknown_ms: Floats


@dataclass(frozen=True)
class Flames:
    """Sampled stacks as a tree, the root of stacks first; node 0 is the root of all.

    frames     names without line numbers, `package.Class.method`
    parent     of each node; that of node 0 is -1.  A parent comes before its children
    frame      row of `frames`; that of node 0 is -1
    mixed_below_share  a function is `mixed` where no resource has this share of its time
    why        the command that tells the words behind a label, with {name} and {index} to be filled in
    coarsened  a sentence where small branches are cut, else ''
    """

    frames: Texts
    parent: Ints
    frame: Ints
    operators: Texts
    sampled: Sampled
    labels: Labels
    mixed_below_share: float
    why: str
    coarsened: str


@dataclass(frozen=True)
class Picture:
    """What a page of a run shows; `flames` is None without samples.

    Of a run with many groups, `verdict` has those with most of the critical path and of the time; `graph.reduced` says
    so.  `redacted` is whether names are replaced (query.results.sharing).
    """

    version: str
    redacted: bool
    said: Said
    verdict: Verdict
    what_if: Grid
    timeline: Timeline
    graph: Graph
    flames: Flames | None
