"""What a framework reports of its run that no finding has: its own measurements, and what its figures rest on."""

from __future__ import annotations

from dataclasses import dataclass

from crystalperf.query.results.kinds import Kind


@dataclass(frozen=True)
class Remark(Kind):
    """What a framework reports; the kinds are its package's, which has a sentence for each."""
