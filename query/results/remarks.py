"""Remarks of a framework about a run, in addition to findings: its own measurements, and what its figures rely on."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind


@frozen
class Remark(Kind):
    """A remark of a framework; its package defines the kinds, with a sentence for each."""

    on_first_screen: ClassVar[bool] = False
    """Whether `analyze` shows it too: it limits how far the answer can be trusted, or what the run can grow to."""
