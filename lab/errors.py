"""What the lab says where it cannot go on."""

from __future__ import annotations

from crystalperf.indexes.errors import CrystalPerfError


class LabError(CrystalPerfError):
    """The lab cannot run here, or a run went wrong; the text says what to do."""


class MachineBusyError(LabError):
    """Another run has the machine."""
