"""Errors of the lab."""

from __future__ import annotations

from crystalperf.indexes.errors import CrystalPerfError


class LabError(CrystalPerfError):
    """The lab cannot run here, or a run failed; the text has the fix."""


class MachineBusyError(LabError):
    """Another run uses the machine."""
