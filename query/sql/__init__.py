"""Questions to the data, a commented file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The statement of `name`.sql; `{parts}` in it are the caller's to fill with str.format()."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
