"""The values of a comparison's page.  Times of a timeline are ms since application start, lengths are ms."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.answers import Parts, PathItem
from crystalperf.query.results.comparison import Comparison
from crystalperf.query.results.flame_difference import FlameDifference
from crystalperf.query.results.kinds import Basis
from crystalperf.query.results.page import Figure, Ints, TableText, Texts, Timeline


@frozen
class PartText:
    """A part of the difference: its sentence, and the stages that it comes from, the largest change first.

    `ms` is positive if it makes the runs after longer.  `basis` is None for the unexplained rest.
    """

    text: str
    ms: float
    basis: Basis | None
    stages: Texts


@frozen
class ComparisonText:
    """The sentences of a comparison, in the framework's words; '' if there is none.

    title      names of the applications
    headline   whether the runtime changed beyond noise
    sentences  the range of the change and its basis
    warnings   what the comparison leaves out, or compares with doubt
    parts      the parts of the difference, which sum to it; `no_parts` is the sentence in place of them
    predicted  the prediction of the runs before for the resources of those after, and its error
    settings   settings that differ, those that matter first
    operators  operators whose number in the plans differs
    no_flames  why there is no differential flame graph
    words, devices, causes  as in PageText
    """

    title: str
    headline: str
    sentences: Texts
    warnings: Texts
    parts: tuple[PartText, ...]
    no_parts: str
    predicted: Texts
    settings: TableText
    operators: TableText
    no_flames: str
    figure: Figure
    words: Mapping[str, str]
    devices: Mapping[str, str]
    causes: Mapping[str, str]


@frozen
class PageSide:
    """One run of a side: the only one, or the one with the median runtime, of two in the middle the shorter.

    resource_ms  its critical path by resource
    path         segments of its critical path, at most those of a run's page; empty for a stream
    row          row of Comparison.stages of each stage of the timeline; -1 for none
    """

    name: str
    facts: Texts
    resource_ms: Parts
    timeline: Timeline
    path: tuple[PathItem, ...]
    row: Ints


@frozen
class ComparisonPage:
    """The data of a comparison's page; `flames` is None if a side has no samples.

    `redacted` is whether names are replaced (query.runfile.anonymize).
    """

    version: str
    redacted: bool
    page_text: ComparisonText
    comparison: Comparison
    before: PageSide
    after: PageSide
    flames: FlameDifference | None
