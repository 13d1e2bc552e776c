"""The frameworks that there are: the built-in ones, and those of other packages."""

from __future__ import annotations

from functools import cache

from indexes.errors import InputError
from query.frameworks import Framework
from query.plugins import entries


@cache
def frameworks() -> dict[str, Framework]:
    """All known frameworks by name, the built-in ones first."""
    from query.frameworks.flink import FLINK
    from query.frameworks.mxnet import MXNET
    from query.frameworks.pytorch import PYTORCH
    from query.frameworks.spark import SPARK
    from query.frameworks.tensorflow import TENSORFLOW

    built_in = {each.name: each for each in (SPARK, FLINK, TENSORFLOW, PYTORCH, MXNET)}
    return {**built_in, **{each.name: each for each in entries("frameworks").values() if each.name not in built_in}}


def get(name: str) -> Framework:
    """A framework by name.  Raises InputError where there is none of that name."""
    try:
        return frameworks()[name]
    except KeyError:
        raise InputError(f"framework '{name}' is not known; known are {', '.join(frameworks())}") from None
