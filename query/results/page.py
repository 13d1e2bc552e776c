"""The values of a page.  Times are ms since application start, lengths are ms; columns of a table are equally long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.answers import Parts, Verdict
from crystalperf.query.results.kinds import Basis
from crystalperf.query.trace.vocabulary import SettingUnit

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Texts = tuple[str, ...]


@frozen
class Figure:
    """The unit of all times of the page: a number of ms is divided by `ms` and shown with `decimals`."""

    name: str
    ms: float
    decimals: int


@frozen
class RecommendationText:
    """A recommendation: its sentence, its saving ('' if unknown), and the lines to paste."""

    text: str
    saving: str
    lines: Texts


@frozen
class WhatIfText:
    """A usual what-if and its prediction; `range` and `change` are '' if there is none."""

    question: str
    setting: str
    runtime: str
    change: str
    range: str


@frozen
class FindingText:
    """A finding: its maximum cost, its sentence, its basis, and the advice."""

    cost: str
    text: str
    basis: Basis
    advice: str


@frozen
class TableText:
    """A table of texts; the first two columns are an id and a name.  `note` explains the heads."""

    heads: Texts
    rows: tuple[Texts, ...]
    note: str


@frozen
class PageText:
    """The sentences that the terminal shows about the run, in the framework's words; '' if there is none.

    facts          name, framework and version, workers and slots, duration
    outcome        how it ended, the most important first; for a stream its rates
    left_out       intervals without work, which no figure includes
    headline       the bottleneck
    rests_on       the share of samples in code that an index has
    nothing_to_do  the sentence in place of recommendations, if there are none
    other          the causes of time on no resource, with a lowercase first word
    same           the usual what-ifs without effect
    unknown        the refused what-ifs, a sentence each
    stations       the stages of a stream: their record rates and utilization
    check          the replay error of the baseline, and what a range means
    missing        what reading the input lost
    not_recorded   what the data do not show
    measurements   the framework's own measurements
    next           the command to type next
    words          words for worker, workers, slot, slots, stage, stages, task, tasks, driver, scope
    devices        the reader's name of each resource, and of `other`
    causes         the text of each cause of time on no resource
    how            how a figure of a what-if is known: recorded, exact (as from `predict`), between (interpolated),
                   refused, unknown (no prediction of the page is near)
    """

    title: str
    facts: Texts
    outcome: Texts
    left_out: str
    headline: str
    unmodelled: str
    rests_on: str
    recommendations: tuple[RecommendationText, ...]
    nothing_to_do: str
    other: str
    what_ifs: tuple[WhatIfText, ...]
    same: str
    unknown: Texts
    check: str
    findings: tuple[FindingText, ...]
    disagreements: Texts
    assumptions: Texts
    missing: Texts
    not_recorded: Texts
    measurements: Texts
    stations: TableText
    next: str
    figure: Figure
    words: Mapping[str, str]
    devices: Mapping[str, str]
    causes: Mapping[str, str]
    how: Mapping[str, str]


@frozen
class Point:
    """One point of the grid and its prediction, as `predict` gives it.

    ratios       new over recorded, in the order of the keys
    amounts      the values in each setting's unit; None if the recorded value is unknown
    predicted_ms  None if the prediction is refused; then `refused` is the sentence, with the known bound
    resource_ms  the predicted critical path by resource, with `other`
    bottleneck   the resource with the most of it, or the cause (see Cause) of other time with more; None if unknown
    stage_ms     the predicted length of each stage of Grid.stages; empty if the prediction is refused
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
    stage_ms: tuple[float | None, ...]


@frozen
class Curve:
    """A sweep of one setting, the smallest value first; the recorded run is between the points, at ratio 1.

    key        the setting of `predict`, in the framework's word
    label      its meaning: slots of each worker
    recorded   the recorded value, in `unit`; None if unknown
    knee       the position of the last point that is still worth it; None if none is, or the rule does not apply
    knee_text  the sentence
    """

    key: str
    label: str
    unit: SettingUnit
    recorded: float | None
    points: tuple[Point, ...]
    knee: int | None
    knee_text: str


@frozen
class Pair:
    """A sweep of two settings together."""

    keys: tuple[str, str]
    points: tuple[Point, ...]


@frozen
class Grid:
    """All what-ifs of the page.

    recorded_ms  the recorded runtime, the baseline of predictions
    stages       ids of the stages whose lengths the points have, and `stage_ms` their recorded lengths
    coarser      why some settings are left out; '' if none is
    command      the command that predicts any other setting, with the placeholders {run} and {settings}
    """

    recorded_ms: float
    bottleneck: str
    resource_ms: Parts
    stages: Texts
    stage_ms: Floats
    curves: tuple[Curve, ...]
    pairs: tuple[Pair, ...]
    coarser: str
    command: str


@frozen
class PageWorkers:
    """Workers, a row each, including a driver that ran tasks; `end_ms` is None if it lived to the end."""

    id: Texts
    host: tuple[str | None, ...]
    start_ms: Ints
    end_ms: tuple[int | None, ...]
    reason: tuple[str | None, ...]


@frozen
class Bars:
    """Tasks, a row each, by lane (a row of the timeline) and start.

    lane      row of Timeline.lanes
    stage     row of Timeline.stages
    status    row of Timeline.statuses
    resource  position of the resource with most of its time; `other` comes after all resources
    count     number of tasks in a row; empty if every row is one task
    """

    lane: Ints
    start_ms: Ints
    length_ms: Ints
    stage: Ints
    status: Ints
    resource: Ints
    count: Ints


@frozen
class Intervals:
    """Intervals with a name, a row each."""

    id: Texts
    name: Texts
    start_ms: Floats
    end_ms: Floats


@frozen
class Timeline:
    """The timeline: where each task ran, and when.  A lane is one of its rows: tasks that ran one after the other.

    lanes        the worker of each lane, a row of `workers`; the lanes of a worker are consecutive
    stages       ids of all stages that ran, by Bars.stage; `stage_names` are their names for users
    figure       the unit of its times, which may be longer than the answer's: a record takes ms, its run hours
    driver       intervals of the driver and of transfers
    pauses       intervals without submitted work, which no figure includes
    coarsened    a sentence if some rows are several tasks, else ''
    """

    start_ms: float
    end_ms: float
    figure: Figure
    workers: PageWorkers
    lanes: Ints
    stages: Texts
    stage_names: Texts
    statuses: Texts
    tasks: Bars
    driver: Intervals
    pauses: Intervals
    coarsened: str


@frozen
class Spread:
    """The distribution of quantities over the tasks of a stage: their values at Graph.quantiles."""

    duration_ms: Floats
    read_bytes: Floats


@frozen
class GraphNode:
    """A stage, or an interval of the driver or a transfer.

    path_ms      its time on the critical path
    resource_ms  for a stage the sum over its tasks; for others wall-clock time
    tasks        number of tasks of a stage, else 0; `spread` is their distribution, if they do the same work
    """

    id: str
    kind: Literal["stage", "driver", "transfer"]
    name: str
    scope: str | None
    start_ms: float
    end_ms: float
    path_ms: float
    resource_ms: Parts
    tasks: int
    spread: Spread | None


@frozen
class GraphScope:
    """A scope of the run, such as a query or a job."""

    id: str
    kind: str
    name: str
    parent: str | None
    start_ms: float
    end_ms: float | None
    status: str


@frozen
class PlanNode:
    """An operator of a scope's plan; `resource_ms` is task time, None if none was attributed to it.

    `basis` is the evidence: samples, or the framework's own timing.
    """

    scope: str
    node_id: int
    parent_id: int | None
    name: str
    detail: str
    stages: Texts
    resource_ms: Parts | None
    basis: str | None


@frozen
class Graph:
    """The execution DAG.  Edges are rows of (source, target), positions in `nodes`; kinds as in dependencies.

    `reduced` is a sentence if some stages or operators are left out, else ''.
    """

    nodes: tuple[GraphNode, ...]
    source: Ints
    target: Ints
    edge_kind: Texts
    scopes: tuple[GraphScope, ...]
    operators: tuple[PlanNode, ...]
    quantiles: Floats
    reduced: str


@frozen
class Labels:
    """Index labels of the functions to which stacks are attributed, a row each.

    frame       row of FlameGraph.frames
    index       the index that has it
    shares      its share of each resource, in the order of the run's resources
    confidence  probability that the largest share is the dominant resource; None if the index is not available
    code, documentation  the shares from its code alone, and from its documentation alone; empty if unknown
    """

    frame: Ints
    index: Texts
    shares: tuple[Floats, ...]
    confidence: tuple[float | None, ...]
    code: tuple[Floats, ...]
    documentation: tuple[Floats, ...]


@frozen
class Sampled:
    """Sampled time, a row for each node of the tree where stacks end, stage and operator.

    stage     row of Timeline.stages; -1 for the driver
    operator  row of FlameGraph.operators; -1 if no frame names one
    resource_ms  a column for each resource, by the label of the attributed function
    waiting_ms   time of waiting stacks without an attributed function
    unknown_ms   time of other stacks without an attributed function: no index has their code
    """

    node: Ints
    stage: Ints
    operator: Ints
    resource_ms: Mapping[str, Floats]
    waiting_ms: Floats
    unknown_ms: Floats


@frozen
class FlameGraph:
    """Sampled stacks as a tree (flame graph), from the root of stacks; node 0 is the root of all.

    frames             names without line numbers, `package.Class.method`
    parent             parent of each node; -1 for node 0.  A parent comes before its children
    frame              row of `frames` for each node; -1 for node 0
    mixed_below_share  a function is `mixed` if no resource has this share of its time
    why                the command that explains a label, with the placeholders {name} and {index}
    coarsened          a sentence if small branches are cut, else ''
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


@frozen
class PageData:
    """The data of a run's page; `flames` is None without samples.

    For a run with many stages, `verdict` has only those with the most critical-path time and the longest;
    `graph.reduced` says so.  `redacted` is whether names are replaced (query.runfile.anonymize).
    """

    version: str
    redacted: bool
    page_text: PageText
    verdict: Verdict
    what_if: Grid
    timeline: Timeline
    graph: Graph
    flames: FlameGraph | None
