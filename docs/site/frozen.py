"""Extension of griffe, which reads classes: one by `@frozen` has the parameters of a dataclass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from griffe import Class, ExprCall, ExprName, Extension

FROZEN = "crystalperf.indexes.frozen.frozen"


class Frozen(Extension):
    def on_class_instance(self, *, cls: Class, **_others: Any) -> None:
        for each in cls.decorators:
            if each.callable_path == FROZEN:
                known = ExprName("dataclasses.dataclass")
                each.value = replace(each.value, function=known) if isinstance(each.value, ExprCall) else known
