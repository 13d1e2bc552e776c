"""Frozen dataclasses that generate their methods at first use.

`@dataclass(frozen=True)` compiles the methods of a class when its module is imported, which takes 0.3 to 0.8 ms of CPU
time a class.  Answers have hundreds of kinds of findings, refusals, assumptions and other parts, and one answer uses
few of them.  `@frozen` makes the same class, but compiles its methods at the first read of one of them or of its
fields: at the first instance, mostly.  So an error in a definition, such as a mutable default, is raised only then.

Until then, a default that `field()` gives is not yet an attribute of the class.  A class without a docstring gets none.
`InitVar` is not supported.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from threading import RLock
from typing import Any, TypeVar, dataclass_transform, overload

_Made = TypeVar("_Made", bound=type)

_REPLACE = ("__replace__",) if sys.version_info >= (3, 13) else ()
_DESCRIBING = ("__match_args__", "__dataclass_params__", "__dataclass_fields__")
_GENERATED = ("__hash__", "__init__", "__repr__", "__eq__", *_REPLACE, *_DESCRIBING)

_LOCK = RLock()
"""One for all classes, because finishing a class also finishes its bases."""


class _Awaited:
    """An attribute of an unfinished class: who reads it finishes the class, and gets what took its place."""

    __slots__ = ("_cls", "_kw_only", "_name")

    def __init__(self, cls: type, kw_only: bool, name: str) -> None:
        self._cls, self._kw_only, self._name = cls, kw_only, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with _LOCK:
            if vars(self._cls)[self._name] is self:
                _finish(self._cls, self._kw_only)
        found = vars(self._cls)[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _finish(cls: type, kw_only: bool) -> None:
    """Generate the awaited attributes of a class.

    They are generated in another class with the same fields, and each then replaces an awaited one.  So another thread
    finds an awaited or a generated one at any moment; a class that `dataclass` works on has neither for a while.
    """
    bases: list[Any] = [each for each in reversed(cls.__mro__[1:]) if is_dataclass(each)]
    if not all(each.__dataclass_params__.frozen for each in bases):
        raise TypeError("cannot inherit frozen dataclass from a non-frozen one")
    inherited = {each.name: each for base in bases for each in fields(base)}
    own = inspect.get_annotations(cls)
    body: dict[str, Any] = {name: each for name, each in inherited.items() if name not in own}
    body |= {name: getattr(cls, name) for name in own if hasattr(cls, name)}
    body |= {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__post_init__") if hasattr(cls, name)}
    body["__annotations__"] = {name: each.type for name, each in inherited.items()} | own
    body["__doc__"] = "None, or `dataclass` would make one of the signature, which takes long."
    same: Any = dataclass(frozen=True, kw_only=kw_only)(type(cls.__name__, (), body))
    for each in fields(same):
        if isinstance(vars(cls).get(each.name), Field):  # given by field()
            setattr(cls, each.name, each.default) if each.default is not MISSING else delattr(cls, each.name)
    for name in _GENERATED:
        if isinstance(vars(cls).get(name), _Awaited):
            setattr(cls, name, vars(same)[name])


def _refuse_changes(cls: Any) -> None:
    """Let instances of a class, and those of classes derived from it, refuse changes of fields."""

    def refuse(instance: object, name: str, what: str) -> None:
        if type(instance) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot {what} field {name!r}")

    def __setattr__(self: object, name: str, value: object) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__


@overload
def frozen(cls: _Made, /) -> _Made: ...
@overload
def frozen(*, kw_only: bool = False) -> Callable[[_Made], _Made]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: _Made | None = None, /, *, kw_only: bool = False) -> _Made | Callable[[_Made], _Made]:
    """`dataclasses.dataclass(frozen=True, kw_only=kw_only)` whose methods are generated at first use."""

    def unfinished(cls: _Made) -> _Made:
        own = dict(vars(cls))
        if "__eq__" in own and own.get("__hash__") is None:  # Python's own None, for a class that defines equality
            own.pop("__hash__", None)
        for name in _GENERATED:
            if name not in own:
                setattr(cls, name, _Awaited(cls, kw_only, name))
        _refuse_changes(cls)
        return cls

    return unfinished if cls is None else unfinished(cls)
