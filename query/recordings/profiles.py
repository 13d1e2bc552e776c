"""Readers of other profilers' files, by kind: recordings if they have times and threads, else collapsed stacks, or the
calls or the memory of functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from crystalperf.query.inputs.files import SampleKind
from crystalperf.query.trace.records import Problems

if TYPE_CHECKING:
    from crystalperf.query.recordings import jfr
    from crystalperf.query.recordings.memory_profile import MemoryProfile
    from crystalperf.query.recordings.pstats import CallProfile
    from crystalperf.query.recordings.stacktable import Collapsed

    Profile = Collapsed | jfr.Recording | CallProfile | MemoryProfile


def read(path: str, kind: SampleKind, problems: Problems) -> Profile:
    """The content of a file.  Raises InputError, one sentence, if it has no usable stack."""
    module = import_module(f"crystalperf.query.recordings.{kind.replace(' ', '_')}")
    found: Profile = module.read(path, problems)
    return found


def kind_of(beginning: bytes) -> SampleKind | None:
    """The kind of a profile by its decompressed beginning; None for another file.

    Each reader is imported only if those before it do not know the file.
    """
    from crystalperf.query.recordings import memory_profile, pstats

    if pstats.is_pstats(beginning):
        return "pstats"
    if memory_profile.is_memory_profile(beginning):
        return "memory profile"
    if beginning.lstrip()[:1] == b"{":
        if b"speedscope" not in beginning:
            return None
        from crystalperf.query.recordings import speedscope

        return "speedscope" if speedscope.is_speedscope(beginning) else None
    from crystalperf.query.recordings import perf_script

    if perf_script.is_perf_script(beginning):
        return "perf script"
    from crystalperf.query.recordings import pprof

    return "pprof" if pprof.is_pprof(beginning) else None
