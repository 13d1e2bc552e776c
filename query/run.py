"""A profiled run: open its file, ask it questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import duckdb

import indexes as contract
from indexes.errors import NoAnswerError, SettingError
from query.answers.values import Debug, Header, Prediction, Sweep
from query.explain.diagnose import diagnose
from query.frameworks import Framework, get
from query.model.execution import Execution, load
from query.model.world import Resources, World, changed_world, combinations, parse_settings, recorded_resources
from query.whatif.predict import Unchanged, predict, replay_unchanged


class Run:
    """One run file.  Opening is cheap; questions read what they need and keep the last scope in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened():
            pass  # refuses a file that is no run file now rather than at the first question
        self._load = lru_cache(maxsize=2)(self._load_scope)
        self._replay = lru_cache(maxsize=2)(self._replay_scope)

    def header(self) -> Header:
        """What the run is, in a few words."""
        with self._opened() as connection:
            facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
            run = connection.execute(
                "SELECT app_id, name, framework, framework_version, duration_ms, complete FROM runs"
            ).fetchall()[0]
            executors = connection.execute(
                "SELECT count(*), max(slots) FROM executors WHERE coalesce(slots, 0) > 0"
            ).fetchall()[0]
            problems = connection.execute(
                """
                SELECT severity, concat(meaning, CASE WHEN count > 1 THEN ' (' || count || ' times)' END)
                FROM import_stats
                ORDER BY list_position(['error', 'data loss', 'info'], severity), count DESC
                """
            ).fetchall()
            samples = connection.execute("SELECT 1 FROM samples LIMIT 1").fetchone()
        return Header(
            app_id=run[0],
            name=run[1] or run[0],
            framework=run[2],
            framework_version=run[3] or "of unknown version",
            executors=executors[0],
            slots_per_executor=executors[1],
            duration_ms=run[4],
            complete=run[5],
            problems=tuple(problems),
            indexes=tuple(json.loads(facts.get("indexes", "[]"))),
            has_samples=samples is not None,
        )

    def debug(self, scope: str = "all") -> Debug:
        """Critical path, seconds on each resource along it, bottleneck (paper §4.2).

        `scope` is `all`, `sql:ID`, `job:ID` or `START..END` in ms since application start.
        """
        execution = self._load(scope)
        with self._opened() as connection:
            return diagnose(connection, execution)

    def predict(
        self,
        settings: Sequence[str] = (),
        *,
        recorded: Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        **changes: object,
    ) -> Prediction | Sweep:
        """The runtime under changed resources: `predict(["cores=2x"])` or `predict(cores="2x")` (paper §5).

        Several settings are one changed world; a list (`cores=2,4,8`) gives a Sweep.  `replan` is whether tasks are
        cut anew as the framework would for other slots, or stay as recorded (the paper).
        """
        texts = [*settings, *(f"{key}={value}" for key, value in changes.items())]
        if not texts:
            raise SettingError("nothing is changed: name a resource, for example --set cores=2x")
        wanted = parse_settings(texts, lists=True)
        execution = self._load(scope)
        known = recorded_resources(execution.recorded, parse_settings(recorded, lists=False))
        framework, base = self._framework(), self._replay(scope)
        points: list[Prediction] = []
        several = combinations(wanted)
        for chosen in several:
            try:
                world = changed_world(chosen, known)
                points.append(predict(execution, world, framework, unchanged=base, replans=replan))
            except NoAnswerError as error:
                if len(several) == 1:
                    raise
                # One question of a list that cannot be asked leaves the others their answers.
                unchanged = predict(execution, changed_world({}, known), framework, unchanged=base)
                points.append(unchanged.refusing(World(chosen, Resources(), {}).describe(), str(error)))
        return points[0] if len(points) == 1 else Sweep(tuple(points))

    def _framework(self) -> Framework:
        with self._opened() as connection:
            return get(connection.execute("SELECT framework FROM runs").fetchall()[0][0])

    def _load_scope(self, scope: str) -> Execution:
        with self._opened() as connection:
            return load(connection, scope)

    def _replay_scope(self, scope: str) -> Unchanged:
        return replay_unchanged(self._load(scope), self._framework())

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = contract.open_read_only(self.path, "run")
        try:
            yield connection
        finally:
            connection.close()
