"""Frames of any JVM, whichever framework runs in it."""

from __future__ import annotations

import pytest

from crystalperf.query.frameworks import Role, jvm
from crystalperf.query.frameworks.registry import frameworks

FRAMES: list[tuple[str, str, Role | None]] = [
    ("jdk.internal.misc.Unsafe", "park", "wait"),
    ("java.util.concurrent.LinkedBlockingQueue", "take", "wait"),
    ("java.util.concurrent.ThreadPoolExecutor", "getTask", "idle"),
    ("java.lang.Thread", "sleep", "rest"),
    ("java.lang.Thread", "join", "wait"),
    ("java.util.concurrent.ThreadPoolExecutor", "runWorker", "scaffolding"),
    ("java.util.zip.Inflater", "inflateBytesBytes", "compute"),
    ("java.util.HashMap", "get", "collection"),
    ("org.acme.Job$$Lambda$14", "apply", "generated"),
    ("java.io.FileInputStream", "readBytes", None),
]


@pytest.mark.parametrize("name", ["spark", "flink"])
@pytest.mark.parametrize(("class_name", "method", "role"), FRAMES)
def test_frames_of_the_jdk_are_the_same_in_every_framework(
    name: str, class_name: str, method: str, role: Role | None
) -> None:
    assert frameworks()[name].reader.frames.annotate(class_name, method) == role


def test_a_framework_of_others_adds_its_own_frames_and_its_first_role_wins() -> None:
    annotate = jvm.roles({"task": (r"org\.acme\.Runner\.run$",), "process": (r"org\.acme\.pipes\.",)})
    assert annotate("org.acme.Runner", "run") == "task"
    assert annotate("org.acme.pipes.Reader", "read") == "process"
    assert annotate("java.util.concurrent.FutureTask", "get") == "wait", "waiting is asked before scaffolding"
    assert annotate("org.acme.Runner", "stop") is None
