"""Trace files of one run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.files import Application, LogPart


def application(framework: str, parts: Sequence[LogPart]) -> Application:
    """The run of these files, in reading order; it has the name of the file, or of their folder."""
    first, origin = parts[0], parts[0].part.name
    name = first.name
    if len(parts) > 1:
        origin, name = first.folder, os.path.basename(first.folder.rstrip("/")) or first.name
    app_id = re.sub(r"[^\w.-]+", "-", name)
    log = LogFile(origin, tuple(each.part for each in parts), app_id)
    return Application(framework, app_id, None, None, None, log, sum(each.size for each in parts))
