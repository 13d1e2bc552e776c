"""Frozen dataclasses that generate their methods at first use are like those of dataclasses."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict, dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any

import pytest

from crystalperf.indexes.frozen import _Awaited, frozen

ROOT = Path(__file__).resolve().parent.parent

CLASSES = '''
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from crystalperf.indexes.frozen import frozen


@frozen
class Base:
    """A base."""

    x: int
    y: list[int] = field(default_factory=list, compare=False)
    z: str = field(default="z", repr=False)
    kinds: ClassVar[dict[str, int]] = {"a": 1}

    @cached_property
    def double(self) -> int:
        return self.x * 2


@frozen
class Sub(Base):
    """Of an unfinished class, with a check."""

    w: float = 0.5

    def __post_init__(self) -> None:
        if self.w < 0:
            raise ValueError("w")

    def __hash__(self) -> int:
        return 7


@frozen(kw_only=True)
class Keywords(Sub):
    """With a keyword that is required; the check is inherited."""

    v: int


@dataclass(frozen=True)
class Plain:
    """By dataclasses."""

    a: int = 1


@frozen
class OfPlain(Plain):
    """Of a class by dataclasses."""

    b: int = 2


@dataclass(frozen=True)
class PlainOfSub(Sub):
    """By dataclasses, of an unfinished class."""

    u: int = 3


@frozen
class Own:
    x: int
    y: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.x == other.x

    def __repr__(self) -> str:
        return "own"


@frozen
class Checked(Own):
    """Makes itself with its base's method."""

    def __init__(self, x: int) -> None:
        super().__init__(x, 5)


@frozen
class Refined(Keywords):
    """Fields of bases, defined again."""

    y: tuple[int, ...]
    w: float
    z: str = "other"
    v: int = 9


class Undecorated(Base):
    """Not a dataclass of its own."""


@frozen
class Empty:
    """Without fields."""
'''

MAKE: dict[str, Callable[[Any], Any]] = {
    "Base": lambda classes: classes.Base(1, [2]),
    "Sub": lambda classes: classes.Sub(1, w=2.0),
    "Keywords": lambda classes: classes.Keywords(1, [3], "s", 0.25, v=4),
    "OfPlain": lambda classes: classes.OfPlain(b=3),
    "PlainOfSub": lambda classes: classes.PlainOfSub(1, u=4),
    "Own": lambda classes: classes.Own(1, 2),
    "Checked": lambda classes: classes.Checked(4),
    "Refined": lambda classes: classes.Refined(1, (5,)),
    "Undecorated": lambda classes: classes.Undecorated(1),
    "Empty": lambda classes: classes.Empty(),
}
"""An instance of each class."""

each_class = pytest.mark.parametrize("name", MAKE)


def _import(folder: Path, name: str, source: str) -> ModuleType:
    (folder / f"{name}.py").write_text(source)
    return import_module(name)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The classes, none of them finished."""
    monkeypatch.syspath_prepend(tmp_path)
    yield _import(tmp_path, "frozen_classes", CLASSES)
    del sys.modules["frozen_classes"]


@pytest.fixture
def usual(tmp_path: Path, made: Any) -> Iterator[Any]:
    """The same classes by dataclasses alone."""
    source = CLASSES.replace("@frozen(", "@dataclass(frozen=True, ").replace("@frozen", "@dataclass(frozen=True)")
    yield _import(tmp_path, "usual_classes", source)
    del sys.modules["usual_classes"]


def _awaited(cls: type) -> set[str]:
    return {name for name, each in vars(cls).items() if isinstance(each, _Awaited)}


def _fields(of: Any) -> list[tuple[object, ...]]:
    return [(each.name, each.type, each.default, each.kw_only, each.compare, each.repr) for each in fields(of)]


@each_class
def test_instances_are_like_those_of_dataclasses(made: Any, usual: Any, name: str) -> None:
    one, other, wanted = MAKE[name](made), MAKE[name](made), MAKE[name](usual)
    assert repr(one) == repr(wanted)
    assert vars(one) == vars(wanted)
    assert one == other
    assert one is not other
    assert one != wanted
    assert hash(one) == hash(wanted) == hash(other)
    assert asdict(one) == asdict(wanted)
    assert _fields(one) == _fields(wanted)
    if name != "Checked":  # its own __init__ does not take all fields
        assert replace(one) == one


@each_class
def test_classes_are_like_those_of_dataclasses(made: Any, usual: Any, name: str) -> None:
    one, wanted = getattr(made, name), getattr(usual, name)
    assert is_dataclass(one)
    assert _fields(one) == _fields(wanted)
    assert str(inspect.signature(one)) == str(inspect.signature(wanted))  # each has its own mark of a factory
    assert inspect.get_annotations(one.__init__) == inspect.get_annotations(wanted.__init__)
    assert one.__match_args__ == wanted.__match_args__
    assert repr(one.__dataclass_params__) == repr(wanted.__dataclass_params__)
    assert one.__init__.__qualname__ == wanted.__init__.__qualname__
    assert one.__init__.__module__ == wanted.__init__.__module__.replace("usual", "frozen")
    assert sorted(vars(one)) == sorted(vars(wanted))


@each_class
def test_instances_are_immutable(made: Any, name: str) -> None:
    one = MAKE[name](made)
    attribute = next(iter(vars(one)), "x")
    before = dict(vars(one))
    with pytest.raises(FrozenInstanceError):
        setattr(one, attribute, 1)
    with pytest.raises(FrozenInstanceError):
        delattr(one, attribute)
    assert vars(one) == before


COMPARISONS = {"__repr__", "__eq__", "__hash__"}


def test_the_first_instance_generates_what_makes_it(made: Any) -> None:
    waiting = (made.Keywords, made.OfPlain, made.Own, made.Checked, made.Empty)
    assert all("__init__" in _awaited(each) for each in waiting if each is not made.Checked)
    one = made.OfPlain(1)
    assert _awaited(made.OfPlain) == COMPARISONS
    assert all("__match_args__" in _awaited(each) for each in waiting if each is not made.OfPlain)
    assert one == made.OfPlain(1)
    assert not _awaited(made.OfPlain)


@pytest.mark.parametrize(
    ("use", "still"),
    [
        (is_dataclass, {"__init__", "__hash__"}),
        (fields, {"__init__", "__hash__"}),
        (lambda cls: cls.__match_args__, {"__init__", "__hash__"}),
        (lambda cls: cls.__dataclass_params__, {"__init__", "__hash__"}),
        (inspect.signature, {"__hash__"}),
        (lambda cls: cls.__hash__, {"__init__"}),
    ],
)
def test_reading_an_attribute_generates_it_and_what_it_needs(
    made: Any, use: Callable[[type], object], still: set[str]
) -> None:
    assert _awaited(made.Own) >= {"__init__", "__hash__", "__match_args__"}
    use(made.Own)
    assert _awaited(made.Own) == still


def test_own_methods_and_attributes_are_kept(made: Any) -> None:
    assert made.Own(1, 2) == made.Own(1, 3) != made.Own(2, 2)
    assert repr(made.Own(1)) == "own"
    assert hash(made.Own(1, 2)) == hash((1, 2))
    assert hash(made.Sub(3)) == 7
    assert made.Base.kinds == {"a": 1}
    assert [each.name for each in fields(made.Base)] == ["x", "y", "z"]


def test_post_init_runs_also_if_it_is_inherited(made: Any) -> None:
    with pytest.raises(ValueError, match="w"):
        made.Keywords(1, w=-1.0, v=2)
    with pytest.raises(ValueError, match="w"):
        made.Sub(1, w=-1.0)


def test_defaults_are_made_for_each_instance(made: Any) -> None:
    one, other = made.Base(1), made.Base(1)
    one.y.append(2)
    assert other.y == []
    assert one == other  # y is not compared
    assert made.Base.z == "z"
    assert not hasattr(made.Base, "y")


def test_cached_properties_are_kept_in_instances(made: Any) -> None:
    one = made.Base(4)
    assert one.double == 8
    assert vars(one)["double"] == 8
    assert one == made.Base(4)


def test_positional_patterns_match(made: Any) -> None:
    match made.Keywords(1, [2], "s", 0.5, v=3):
        case made.Keywords(x, y, z, w, v=v):
            assert (x, y, z, w, v) == (1, [2], "s", 0.5, 3)
        case _:
            pytest.fail("no pattern matched")


def test_bases_must_be_frozen() -> None:
    @dataclass
    class Changing:
        x: int

    with pytest.raises(TypeError, match="non-frozen"):
        frozen(type("Derived", (Changing,), {}))(1)


def test_an_error_in_a_definition_is_raised_at_each_use() -> None:
    @frozen
    class Wrong:
        x: list[int] = []  # noqa: RUF012

    for _ in range(2):
        with pytest.raises(ValueError, match="mutable default"):
            Wrong()


@each_class
def test_copies_are_equal(made: Any, name: str) -> None:
    one = MAKE[name](made)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert hash(again) == hash(one)
        assert vars(again) == vars(one)


LOADED = """
import pickle, sys
from dataclasses import FrozenInstanceError
from pathlib import Path
one, other = (pickle.loads(Path(sys.argv[1]).read_bytes()) for _ in range(2))
{first}
"""


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Base", "assert one == other and one is not other"),
        ("Own", "assert one == other and hash(one) == hash(other)"),
        ("Keywords", "assert one == other and one is not other and hash(one) == hash(other)"),
        ("Keywords", "assert {one: 1}[other] == 1"),
        ("Keywords", "assert repr(one) == sys.argv[2], repr(one)"),
        ("Keywords", "try:\n    one.x = 5\n    one.a = 5\nexcept FrozenInstanceError: pass\nelse: sys.exit('changed')"),
        ("Keywords", "try:\n    del one.x\nexcept FrozenInstanceError: pass\nelse: sys.exit('deleted')"),
        ("Keywords", "from copy import deepcopy\nassert deepcopy(one) == one"),
    ],
)
def test_instances_of_another_process_are_right_before_the_class_is_used(
    made: Any, tmp_path: Path, name: str, first: str
) -> None:
    kept = tmp_path / "one.pickle"
    one = MAKE[name](made)
    kept.write_bytes(pickle.dumps(one))
    command = [sys.executable, "-c", LOADED.format(first=first), str(kept), repr(one)]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_threads_may_make_the_first_instances_at_once() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    workers = 8
    try:
        with ThreadPoolExecutor(workers) as pool:
            for _ in range(30):
                classes: list[Any] = []
                for number in range(4):
                    body = {"__annotations__": {f"x{each}": int for each in range(10)}, "__qualname__": f"C{number}"}
                    bases = (classes[-1],) if classes else ()
                    classes.append(frozen(type(f"C{number}", bases, body)))
                start = Barrier(workers)

                def use(cls: Any, start: Barrier = start) -> Any:
                    start.wait()
                    one = cls(*range(10))
                    assert one == cls(*range(10))
                    assert hash(one) == hash(cls(*range(10)))
                    return one

                found = list(pool.map(use, [classes[3], classes[0]] * (workers // 2)))
                assert [each.x9 for each in found] == [9] * workers
    finally:
        sys.setswitchinterval(interval)


def test_every_frozen_class_of_the_project_can_be_finished() -> None:
    finished = 0
    for folder in ("indexes", "query"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "import frozen" in path.read_text():
                module = import_module(".".join(("crystalperf", *path.relative_to(ROOT).with_suffix("").parts)))
                for each in vars(module).values():
                    if isinstance(each, type) and each.__module__ == module.__name__ and is_dataclass(each):
                        assert inspect.signature(each) is not None
                        assert each.__hash__ is not object.__hash__
                        assert not _awaited(each)
                        finished += 1
    assert finished > 100


def test_the_documentation_shows_their_parameters(made: Any, tmp_path: Path) -> None:
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "docs" / "site" / "frozen.py"))
    loader = griffe.GriffeLoader(search_paths=[tmp_path], allow_inspection=False, extensions=extensions)
    classes = loader.load("frozen_classes")
    for name in ("Sub", "Keywords", "OfPlain"):
        shown = [each.name for each in classes[name].parameters]
        assert shown == ["self", *inspect.signature(getattr(made, name)).parameters]
