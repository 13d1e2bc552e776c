"""Frozen dataclasses that generate each method at its first use.

`@dataclass(frozen=True)` compiles six methods of a class when its module is imported, which takes 0.5 to 1.2 ms of CPU
time a class.  Answers have hundreds of kinds of findings, refusals, assumptions and other parts; one answer uses few of
them, and compares or prints fewer.  `@frozen` makes the same class, but generates a method or the list of fields when
it is read first: `__init__` at the first instance, mostly.  So an error in a definition, such as a mutable default, is
raised only then.

Until then, a default that `field()` gives is not yet an attribute of the class.  A class without a docstring gets none.
`InitVar` is not supported.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from functools import cache
from threading import RLock
from typing import Any, TypeVar, dataclass_transform, overload

_Made = TypeVar("_Made", bound=type)

_LOCK = RLock()
"""One for all classes, because generating an attribute of a class reads attributes of its bases."""


class _Awaited:
    """An attribute that is not generated yet: who reads it generates it, and gets what took its place."""

    __slots__ = ("_cls", "_kw_only", "_name")

    def __init__(self, cls: type, kw_only: bool, name: str) -> None:
        self._cls, self._kw_only, self._name = cls, kw_only, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with _LOCK:
            if vars(self._cls)[self._name] is self:
                _replace_awaited(self._cls, _GENERATED[self._name](self._cls, self._kw_only))
        found = vars(self._cls)[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _replace_awaited(cls: type, generated: Mapping[str, Any]) -> None:
    """Replace the awaited attributes of a class that are generated now.

    So another thread finds an awaited or a generated one at any moment; a class that `dataclass` works on has neither
    for a while.
    """
    for name, each in generated.items():
        if isinstance(vars(cls).get(name), _Awaited):
            setattr(cls, name, each)


def _description(cls: type, kw_only: bool) -> dict[str, Any]:
    """The fields of a class, and what else needs no compiled code."""
    bases: list[Any] = [each for each in reversed(cls.__mro__[1:]) if is_dataclass(each)]
    if not all(each.__dataclass_params__.frozen for each in bases):
        raise TypeError("cannot inherit frozen dataclass from a non-frozen one")
    inherited = {each.name: each for base in bases for each in fields(base)}
    own = inspect.get_annotations(cls)
    body: dict[str, Any] = {name: each for name, each in inherited.items() if name not in own}
    body |= {name: getattr(cls, name) for name in own if hasattr(cls, name)}
    types = {name: each.type for name, each in inherited.items()} | own
    same = _dataclass(cls, body, types, init=False, repr=False, eq=False, kw_only=kw_only)
    for each in fields(same):
        if isinstance(vars(cls).get(each.name), Field):  # given by field()
            setattr(cls, each.name, each.default) if each.default is not MISSING else delattr(cls, each.name)
    return {**vars(same), "__dataclass_params__": _parameters(kw_only)}


@cache
def _parameters(kw_only: bool) -> Any:
    return vars(dataclass(frozen=True, kw_only=kw_only)(type("Example", (), {})))["__dataclass_params__"]


def _comparisons(cls: Any, kw_only: bool) -> dict[str, Any]:
    """The methods that print and compare instances."""
    known = {each.name: each for each in fields(cls)}
    types = {name: each.type for name, each in known.items()}
    made = vars(_dataclass(cls, dict(known), types, init=False, unsafe_hash=True, kw_only=kw_only))
    return {name: made[name] for name in ("__repr__", "__eq__", "__hash__")}


def _dataclass(cls: type, body: dict[str, Any], types: dict[str, Any], **options: bool) -> Any:
    """Another class of the same name by `dataclass`, with fields of these types."""
    body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__annotations__": types}
    body["__doc__"] = "None, or `dataclass` would make one of the signature, which takes long."
    return dataclass(**options)(type(cls.__name__, (), body))


class _Factory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _initializer(cls: Any, _: bool) -> dict[str, Any]:
    """`__init__`, as `dataclass` writes it for a frozen class, from the names of its fields."""
    names = {"__name__": cls.__module__, "__set": object.__setattr__, "__factory": _FACTORY}
    parameters: dict[bool, list[str]] = {False: ["self"], True: ["*"]}
    lines = []
    for each in fields(cls):
        name = value = each.name
        default, make = each.default, f"__make_{name}()"
        if each.default_factory is not MISSING:
            names[f"__make_{name}"], default = each.default_factory, _FACTORY
            value = f"{make} if {name} is __factory else {name}" if each.init else make
        if each.init:
            names[f"__default_{name}"] = default
            parameters[bool(each.kw_only)].append(name if default is MISSING else f"{name}=__default_{name}")
        if each.init or default is _FACTORY:
            lines.append(f"__set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    listed = ", ".join(parameters[False] + parameters[True] * (len(parameters[True]) > 1))
    exec(f"def __init__({listed}):\n " + "\n ".join(lines or ["pass"]), names)
    made: Any = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in fields(cls) if each.init} | {"return": None}
    return {"__init__": made}


_GENERATED: dict[str, Callable[[type, bool], dict[str, Any]]] = {
    "__init__": _initializer,
    **dict.fromkeys(("__hash__", "__repr__", "__eq__"), _comparisons),
    **dict.fromkeys(("__match_args__", "__dataclass_params__", "__dataclass_fields__"), _description),
    **dict.fromkeys(("__replace__",) if sys.version_info >= (3, 13) else (), _description),
}
"""Generators of attributes, by the name of the attribute."""


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
