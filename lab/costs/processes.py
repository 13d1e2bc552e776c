"""The cost of a whole process: wall-clock time, CPU time, and peak memory."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds, CPU seconds and peak memory (MiB) of a process and the children that it waited for."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def cost(
    command: Sequence[str],
    home: Path,
    *,
    stdin: Path | None = None,
    said: Path | None = None,
    answered: Collection[int] = (0,),
    more: Mapping[str, str] | None = None,
) -> Cost:
    """Run a command with CrystalPerf's cache in `home`, and `more` environment variables.

    Standard output is dropped, or goes to the file `said` together with standard error.  Raises LabError for an exit
    code that is not in `answered`.
    """
    environment = {**os.environ, "CRYSTALPERF_HOME": str(home), "NO_COLOR": "1", **(more or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
    files: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, str(stdin or os.devnull), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(said or os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    if said is not None:
        files.append((os.POSIX_SPAWN_DUP2, 1, 2))
    begin = time.perf_counter()
    child = os.posix_spawnp(command[0], [*command], environment, file_actions=files)
    _, status, usage = os.wait4(child, 0)
    wall_s = time.perf_counter() - begin
    if (code := os.waitstatus_to_exitcode(status)) not in answered:
        why = "" if said is None else f": {said.read_text(errors='replace')[-500:]}"
        raise LabError(f"{' '.join(command)} failed with {code}{why}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
