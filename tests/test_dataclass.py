"""The house's dataclass beside that of the standard library."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field, replace
from typing import Any

import pytest

from indexes.dataclass import dataclass


@dataclass(frozen=True)
class Place:
    name: str
    at: tuple[int, ...] = ()
    more: dict[str, int] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Standard:
    name: str
    at: tuple[int, ...] = ()
    more: dict[str, int] = field(default_factory=dict)


@dataclass
class Counter:
    count: int = 0


@dataclass(slots=True)
class Slotted:
    count: int = 0


@dataclass(frozen=True)
class Farther(Place):
    far: bool = False


@pytest.mark.parametrize("made", [Place, Standard])
def test_instances_are_told_apart_by_their_fields(made: Any) -> None:
    assert made("a") == made("a", ()) != made("b")
    assert made("a") != ("a", (), {})
    assert made("a") != Counter()
    assert replace(made("a"), name="b") == made("b")
    assert [each.name for each in dataclasses.fields(made)] == ["name", "at", "more"]
    assert made.__match_args__ == ("name", "at", "more")
    assert repr(made("a", (1,))).endswith("(name='a', at=(1,), more={})")
    with pytest.raises(TypeError, match="unhashable type: 'dict'"):
        hash(made("a"))


def test_a_frozen_one_is_a_key_and_another_is_none() -> None:
    @dataclass(frozen=True)
    class Key:
        name: str

    assert {Key("a"): 1}[Key("a")] == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Slotted())


def test_fields_are_inherited_and_kinds_differ() -> None:
    assert repr(Farther("a", far=True)) == "Farther(name='a', at=(), more={}, far=True)"
    assert Farther("a") != Place("a")


def test_slots_hold_nothing_else() -> None:
    one = Slotted(1)
    assert one == Slotted(1)
    assert repr(one) == "Slotted(count=1)"
    with pytest.raises(AttributeError):
        one.other = 1  # type: ignore[attr-defined]


def test_an_instance_goes_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Place("a", (1,)))) == Place("a", (1,))
