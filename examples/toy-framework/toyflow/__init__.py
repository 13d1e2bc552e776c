"""Jam: an invented dataflow framework, as an example of a package that adds a framework to CrystalPerf.

A jam factory cooks fruit in kettles.  Stations (stages) fill jars (tasks); a station passes jars to the next while
both run.  Its log has one JSON object per line, with times in seconds since the start:

    {"jam": 1, "id": "plum-7", "name": "plum", "started": 1700000000, "seconds": 13}
    {"kettle": "k1", "lanes": 2}
    {"station": "cook", "order": "plum", "reads": []}
    {"station": "fill", "order": "plum", "reads": ["cook"], "flows": true}
    {"jar": 1, "station": "cook", "kettle": "k1", "from": 1, "to": 11, "cpu": 2, "heat": 8, "waited": 0}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from crystalperf.plugin import (
    Edge,
    Framework,
    Head,
    InputError,
    LogFile,
    LogPart,
    Reader,
    Resource,
    Scope,
    Stage,
    Task,
    Trace,
    Vocabulary,
    Worker,
    lines,
    of_rows,
)

HEAT = Resource("heat", "stove", "heat", "speed", shared_by="nobody")
"""A resource in addition to CPU, disk and network; twice the heat cooks in half the time."""


def recognise(head: Head) -> LogPart | None:
    """Recognises a log of the factory: it begins with its version."""
    if not head.text.startswith(b'{"jam"'):
        return None
    first = json.loads(head.text.partition(b"\n")[0])
    return LogPart(
        head.part, head.folder, head.name, head.size, app_id=first["id"], app_name=first.get("name"),
        started=first["started"] * 1000.0,
    )  # fmt: skip


def read(log: LogFile) -> Trace:
    """The trace of a log."""
    events = list(_events(log))
    if not events:
        raise InputError(f"{log.origin}: holds no event; give the log of a finished order")
    run, jars = events[0], _with("jar", events)
    stations = _with("station", [each for each in events if "jar" not in each])
    return of_rows(
        {
            "app_id": run["id"],
            "name": run.get("name"),
            "framework": "jam",
            "framework_version": str(run["jam"]),
            "started_at_ms": run["started"] * 1000,
            "duration_ms": run["seconds"] * 1000.0,
        },
        workers=[Worker(each["kettle"], each["lanes"], host=each["kettle"]) for each in _with("kettle", events)
                 if "lanes" in each],
        stages=[_stage(rank, each, jars) for rank, each in enumerate(stations)],
        tasks=[_unit(each) for each in jars],
        edges=[
            Edge(_id(source), _id(each["station"]), "pipelined" if each.get("flows") else "barrier", "belt")
            for each in stations
            for source in each["reads"]
        ],
        scopes=[_scope(order, stations, jars) for order in dict.fromkeys(each["order"] for each in stations)],
        more_resources=[HEAT],
    )  # fmt: skip


def _events(log: LogFile) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines(log), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise InputError(f"{log.origin}: line {number} is not JSON; give the factory's own log") from error


def _with(key: str, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in events if key in each]


def _id(station: str) -> str:
    return f"station:{station}"


def _stage(rank: int, station: dict[str, Any], jars: list[dict[str, Any]]) -> Stage:
    mine = [each for each in jars if each["station"] == station["station"]]
    return Stage(
        _id(station["station"]),
        task_count=len(mine),
        first_launch_ms=min((each["from"] * 1000.0 for each in mine), default=None),
        end_ms=max((each["to"] * 1000.0 for each in mine), default=None),
        name=station["station"],
        scope_id=f"order:{station['order']}",
        priority=rank,
    )


def _unit(jar: dict[str, Any]) -> Task:
    return Task(
        jar["jar"],
        _id(jar["station"]),
        jar["kettle"],
        launch_ms=jar["from"] * 1000.0,
        finish_ms=jar["to"] * 1000.0,
        host=jar["kettle"],
        pipeline_wait_ms=jar.get("waited", 0) * 1000.0,
        measured_ms={name: jar.get(name, 0) * 1000.0 for name in ("cpu", "heat")},
    )


def _scope(order: str, stations: list[dict[str, Any]], jars: list[dict[str, Any]]) -> Scope:
    names = {each["station"] for each in stations if each["order"] == order}
    mine = [each for each in jars if each["station"] in names]
    start, end = min(each["from"] for each in mine), max(each["to"] for each in mine)
    return Scope(f"order:{order}", "order", start * 1000.0, end * 1000.0, name=order)


JAM = Framework(
    name="jam",
    title="Jam",
    reader=Reader(recognise=recognise, read=read),
    vocabulary=Vocabulary(
        worker="kettle",
        slot="burner",
        stage="station",
        task="jar",
        driver="foreman",
        scope="order",
        scopes=("order",),
        settings={"kettles": "workers", "burners": "cores"},
        log="a log of the jam factory",
        log_hint="give the file that the factory writes",
    ),
)
