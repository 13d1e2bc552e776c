"""The house's `dataclass`: what a type checker takes for that of the standard library, and quick to make.

The one of the standard library writes a class's methods as text and compiles them whenever the class is imported, a
millisecond for each frozen class; of the two hundred that `analyze` imports that was an eighth of a second.  Here
`__init__` alone is compiled, and the other methods are common to all classes.  That nobody sets a field of a frozen
instance is checked by mypy alone, as all types are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False) -> type | Callable:
        """A class of data; a frozen one has a hash, which is that of its fields."""
        if cls is None:
            return lambda each: dataclass(each, frozen=frozen, slots=slots)
        for name, method in (("__repr__", _repr), ("__eq__", _eq), ("__hash__", _hash if frozen else None)):
            if name not in cls.__dict__:
                setattr(cls, name, method)
        return dataclasses.dataclass(cls, repr=False, eq=False, slots=slots)


def _repr(self: Any) -> str:
    told = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self.__class__))
    return f"{self.__class__.__qualname__}({told})"


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _values(data: Any) -> tuple[Any, ...]:
    return tuple([getattr(data, name) for name in _names(data.__class__)])


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(cls))
