"""Commands for child processes in Python, isolated from the user's working directory and environment.

Without `-I` a child imports from the working directory first: a file ./duckdb.py in a folder with logs would run.
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
    """The command that runs a program isolated, with these modules importable from where this process found them.

    An isolated Python would not find modules in the user's site-packages or in $PYTHONPATH.
    """
    return _isolated(program, dict.fromkeys(_folder(each) for each in modules))


def own_module(name: str) -> list[str]:
    """The command that runs a module of CrystalPerf as `python -m` does, with this process's import path."""
    program = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    return _isolated(program, [each for each in sys.path if os.path.isabs(each)])


def installed_module(name: str, *arguments: str) -> list[str]:
    """The command that runs an installed module, as `python -m` does, isolated."""
    return [sys.executable, "-I", "-m", name, *arguments]


def end_with_parent() -> None:
    """End this process when its parent ends.  A parent that was killed cannot end its children."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def error_report(error: Exception) -> dict[str, object]:
    """An error as a mapping for JSON, sent by a child to its parent; errors that no user caused have the kind Bug."""
    if not isinstance(error, CrystalPerfError):
        what = " ".join(str(error).split())[:300] or "no message"
        return {"kind": "Bug", "message": f"a bug of CrystalPerf ({type(error).__name__}: {what})", "remedy": None}
    remedy = None if error.remedy is None else msgspec.to_builtins(error.remedy)
    return {"kind": type(error).__name__, "message": str(error), "remedy": remedy}


def reported_remedy(content: Mapping[str, Any]) -> Remedy | None:
    """The remedy in the content of error_report(); None if it has none."""
    remedy = content["remedy"]
    return None if remedy is None else msgspec.convert(remedy, type=Remedy)


def _isolated(program: str, folders: Iterable[str]) -> list[str]:
    return [sys.executable, "-I", "-c", f"import sys; sys.path += {[*folders]!r}\n{program}"]


def _folder(module: ModuleType) -> str:
    """The folder that a top-level module is imported from."""
    file = Path(module.__file__ or "").absolute()
    return str(file.parent.parent if file.stem == "__init__" else file.parent)
