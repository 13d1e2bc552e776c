"""Resolution of calls by name, if the name is unambiguous.

Sources are parsed without types, so only these calls are resolved, and only if exactly one function matches:

    f(…), this.f(…), self.f(…)   a function nested in the caller or in its scope, a method of the caller's class, else
                                 the only function of that name in the whole package of sources
    X.f(…)                       the method f of the only class or object X that has one
    new X(…), X(…)               the constructor of the only class X
    blockManager.f(…)            the method f of the only class whose name ends like the receiver: BlockManager
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from crystalperf.indexer.records import Function

_SELF = frozenset({"", "this", "self", "super", "cls"})


def resolve_calls(functions: Sequence[Function], calls: Sequence[tuple[int, str, str]]) -> list[int | None]:
    """For each call (caller, name, receiver) the number of the called function, None if it is ambiguous."""
    by_name: dict[str, list[int]] = defaultdict(list)
    types = [_last(function.class_name) for function in functions]
    known: dict[tuple[str, str], int | None] = {}
    by_class: dict[tuple[str, str | None, str], list[int]] = defaultdict(list)
    constructors: dict[str, list[int]] = defaultdict(list)
    nested: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for number, function in enumerate(functions):
        if function.kind in ("constructor", "initialiser"):
            if function.class_name and function.name != "<clinit>":
                constructors[types[number]].append(number)
            continue
        if function.kind == "lambda":
            continue
        by_name[function.name].append(number)
        by_class[function.package, function.class_name, function.name].append(number)
        nested[function.enclosing, function.name].append(number)

    def resolve(caller: int, name: str, receiver: str) -> int | None:
        if receiver in _SELF:
            return of_enclosing(caller, name) if receiver != "super" else None
        last = receiver.replace("::", ".").replace("->", ".").rpartition(".")[2]
        if (name, last) not in known:
            known[name, last] = of_type(name, last)
        return known[name, last]

    def of_type(name: str, last: str) -> int | None:
        candidates = by_name.get(name, ())
        if last[:1].isupper():
            return _only([each for each in candidates if types[each] == last])
        if len(last) < 4:
            return None
        ending = last.lstrip("_").lower()
        return _only([each for each in candidates if types[each].lower().endswith(ending)])

    def of_enclosing(caller: int, name: str) -> int | None:
        at: int | None = caller
        while at is not None:
            if found := nested.get((at, name)):
                return _only(found)
            at = functions[at].enclosing
        function = functions[caller]
        if found := by_class.get((function.package, function.class_name, name)):
            return _only(found)
        if name in constructors and name[:1].isupper():
            # Of class and companion object, the class; a class with several constructors is ambiguous.
            return _only([each for each in constructors[name] if functions[each].descriptor.endswith("#`<init>`().")])
        return _only(by_name.get(name, ()))

    return [resolve(*call) for call in calls]


def _only(candidates: Sequence[int]) -> int | None:
    return candidates[0] if len(candidates) == 1 else None


def _last(class_name: str | None) -> str:
    return (class_name or "").rpartition(".")[2]
