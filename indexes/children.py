"""Every Python that CrystalPerf starts: isolated from the folder and the environment that the user happens to be in.

Without `-I` the working directory is the first place that a child imports from, and a file named ./duckdb.py there
would be run by whoever looks at a log beside it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from crystalperf.indexes.errors import CrystalPerfError, Remedy


def python(program: str, modules: Sequence[ModuleType] = ()) -> list[str]:
    """The command that runs a program isolated; it imports these modules from where this process has them.

    They may lie where an isolated Python does not look: beside the user's own packages, or in $PYTHONPATH.
    """
    return _isolated(program, dict.fromkeys(_folder(each) for each in modules))


def own_module(name: str) -> list[str]:
    """The command that runs a module of CrystalPerf, as `python -m` does, with what this process can import."""
    program = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    return _isolated(program, [each for each in sys.path if os.path.isabs(each)])


def installed_module(name: str, *arguments: str) -> list[str]:
    """The command that runs an installed module, as `python -m` does, isolated."""
    return [sys.executable, "-I", "-m", name, *arguments]


def end_with_parent() -> None:
    """From now on this process ends when its parent has, which may have been killed and then kills nobody."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def told(error: Exception) -> dict[str, object]:
    """An error as a child tells it its parent, in JSON; what is none of a user's is of the kind Bug."""
    if not isinstance(error, CrystalPerfError):
        what = " ".join(str(error).split())[:300] or "no message"
        return {"kind": "Bug", "what": f"a bug of CrystalPerf ({type(error).__name__}: {what})", "remedy": None}
    remedy = None if error.remedy is None else msgspec.to_builtins(error.remedy)
    return {"kind": type(error).__name__, "what": str(error), "remedy": remedy}


def remedy_told(content: Mapping[str, Any]) -> Remedy | None:
    """The remedy of an error that told() told."""
    remedy = content["remedy"]
    return None if remedy is None else msgspec.convert(remedy, type=Remedy)


def _isolated(program: str, folders: Iterable[str]) -> list[str]:
    return [sys.executable, "-I", "-c", f"import sys; sys.path += {[*folders]!r}\n{program}"]


def _folder(module: ModuleType) -> str:
    """The folder that a top-level module is imported from."""
    file = Path(module.__file__ or "").absolute()
    return str(file.parent.parent if file.stem == "__init__" else file.parent)
