"""A profiled run: open its file, ask it questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import duckdb

import indexes as contract
from indexes import guard
from indexes.errors import IndexFileError, NoAnswerError, Remedy, SettingError
from query.answers import verdict
from query.answers.values import Debug, Header, Prediction, ReadingProblem, Sweep, Verdict
from query.explain.chances import Chance, chances
from query.explain.diagnose import diagnose
from query.explain.facts import group_details
from query.frameworks.known import get
from query.model.execution import Execution
from query.model.load import load, most_at_a_time, run_resources
from query.model.world import (
    Configuration,
    Value,
    World,
    changed_world,
    combinations,
    is_unchecked,
    parse_settings,
    recorded_resources,
    settings_of,
)
from query.whatif.predict import Unchanged, predict, predicted_by, replay_unchanged


class Run:
    """One run file.  Opening is cheap; questions read what they need and keep the last scope in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as connection:  # refuses what is no run file now rather than at the first question
            _check_content(connection, path)
        self._load = lru_cache(maxsize=2)(self._load_scope)
        self._replay = lru_cache(maxsize=2)(self._replay_scope)

    def header(self) -> Header:
        """What the run is, in a few words."""
        with self._opened() as connection:
            facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
            run = connection.execute(
                "SELECT app_id, name, framework, framework_version, measure, duration_ms, complete FROM runs"
            ).fetchall()[0]
            workers = connection.execute(
                """
                SELECT added_ms, removed_ms, lanes FROM workers
                WHERE lanes > 0 OR (lanes IS NULL AND worker_id IN (SELECT DISTINCT worker_id FROM units))
                """
            ).fetchall()
            problems = connection.execute(
                """
                SELECT severity, CASE
                    WHEN count = 1 OR starts_with(meaning, count::VARCHAR) THEN meaning  -- some say their number
                    ELSE concat(meaning, ' (', count, ' times)')
                END
                FROM import_stats
                ORDER BY list_position(['error', 'data loss', 'info'], severity), count DESC
                """
            ).fetchall()
            samples = connection.execute("SELECT 1 FROM samples LIMIT 1").fetchone()
            resources = run_resources(connection)
        framework = get(run[2])
        return Header(
            app_id=run[0],
            name=run[1] or run[0],
            framework=framework.name,
            framework_title=framework.title,
            framework_version=run[3],
            measure=run[4],
            workers=most_at_a_time((added, removed) for added, removed, _ in workers),
            workers_in_all=len(workers),
            slots_per_worker=max((lanes for _, _, lanes in workers if lanes is not None), default=None),
            duration_ms=run[5],
            complete=run[6],
            problems=tuple(ReadingProblem(*each) for each in problems),
            indexes=tuple(json.loads(facts.get("indexes", "[]"))),
            has_samples=samples is not None,
            resources=resources,
            vocabulary=framework.vocabulary,
        )

    def verdict(self, progress: Callable[[str], None] = lambda _: None) -> Verdict:
        """What holds the run up, where its time went, what would help and what to do next.

        `progress` is told each step in a few words.
        """
        return verdict.verdict(self, progress)

    def debug(self, scope: str = "all") -> Debug:
        """Critical path, seconds on each resource along it, bottleneck (paper §4.2).

        `scope` is `all` (pauses of a shell or notebook are left out), `whole` (they are not), the id of a scope, or
        `START..END` in ms since application start.
        """
        execution = self._load(scope)
        with self._opened() as connection:
            return verdict.completed(diagnose(connection, execution), self.header())

    def chances(self, debug: Debug) -> list[Chance]:
        """What could be changed about the whole run, of which `debug` is the answer; query.answers.actions ranks it."""
        execution = self._load("all")
        with self._opened() as connection:
            return chances(connection, execution, group_details(connection, execution, debug.critical_path), debug)

    def predict(
        self,
        settings: Sequence[str] = (),
        *,
        recorded: Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        predictor: str | None = None,
        **changes: object,
    ) -> Prediction:
        """The runtime under changed resources: `predict(["cores=2x"])` or `predict(cores="2x")` (paper §5).

        Several settings are one changed world; for several values of one ask sweep().  `recorded` is what the run had
        where its log does not tell.  `replan` is whether units are cut anew as the framework would for other slots, or
        stay as recorded (the paper).  `predictor` names the model of another package.  Raises SettingError where a
        setting makes no sense, NoAnswerError where the run cannot be asked that.
        """
        texts = _texts(settings, changes)
        chosen, known = self._asked(texts, recorded, scope, lists=False)
        world = changed_world({key: value for key, (value,) in chosen.items()}, known)
        return self._predicted(world, scope, replan, predictor)

    def sweep(
        self,
        settings: Sequence[str] = (),
        *,
        recorded: Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        predictor: str | None = None,
        **changes: object,
    ) -> Sweep:
        """One prediction for each combination of listed values: `sweep(["cores=2,4,8"])`; the rest is as in predict().

        Of several questions, those that the run cannot be asked say why in `refused`; one alone raises NoAnswerError.
        """
        wanted, known = self._asked(_texts(settings, changes), recorded, scope, lists=True)
        points: list[Prediction] = []
        several = combinations(wanted)
        for chosen in several:
            try:
                points.append(self._predicted(changed_world(chosen, known), scope, replan, predictor))
            except NoAnswerError as error:
                if len(several) == 1:
                    raise
                refused = self.unchanged(scope).refusing(World(chosen).describe(), str(error), error.remedy)
                points.append(refused)
        return Sweep(tuple(points), _amounts(wanted))

    def _asked(
        self, texts: Sequence[str], recorded: Sequence[str], scope: str, *, lists: bool
    ) -> tuple[dict[str, tuple[Value, ...]], Configuration]:
        """The values that are asked for, and what the run had."""
        execution = self._load(scope)
        settable, words = (
            settings_of(execution.resources, execution.framework.vocabulary, execution.operators),
            execution.framework.vocabulary.settings,
        )
        wanted = parse_settings(texts, settable, words, lists=lists)
        stated = parse_settings(recorded, settable, words, lists=False)
        return wanted, recorded_resources(execution.recorded, stated)

    def _predicted(self, world: World, scope: str, replan: bool, predictor: str | None) -> Prediction:
        execution, base = self._load(scope), self._replay(scope)
        if predictor is not None:
            return predicted_by(predictor, execution, world, base)
        return predict(execution, world, base=base, replans=replan)

    def unchanged(self, scope: str = "all") -> Prediction:
        """What the model makes of a scope in which nothing is changed."""
        execution = self._load(scope)
        return predict(execution, changed_world({}, execution.recorded), base=self._replay(scope))

    def _load_scope(self, scope: str) -> Execution:
        with self._opened() as connection:
            return load(connection, scope)

    def _replay_scope(self, scope: str) -> Unchanged:
        return replay_unchanged(self._load(scope))

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = contract.open_read_only(self.path, "run")
        try:
            with guard.damage_told(self.path, "run"):
                yield connection
        finally:
            connection.close()


def _texts(settings: Sequence[str], changes: Mapping[str, object]) -> list[str]:
    texts = [*settings, *(f"{key}={value}" for key, value in changes.items())]
    if not texts:
        raise SettingError("nothing is changed: name a resource and what it would be, for example cores=2x")
    return texts


def _check_content(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse a run file with the tables of one, but not with what every run has."""
    count = connection.execute("SELECT count(*) FROM runs").fetchall()[0][0]
    facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
    try:
        names = json.loads(facts.get("indexes", "[]"))
    except (ValueError, RecursionError):
        names = None
    if count != 1 or not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise IndexFileError(f"{path}: damaged, or from elsewhere", Remedy("profile again"))


def _amounts(wanted: dict[str, tuple[Value, ...]]) -> tuple[float, ...]:
    """See Sweep."""
    if len(wanted) != 1:
        return ()
    ((key, values),) = wanted.items()
    if is_unchecked(key):  # more data, or more and smaller units, are not more of a resource
        return ()
    for amounts in ([each.absolute for each in values], [each.ratio for each in values]):
        known = tuple(each for each in amounts if each is not None)
        if len(known) == len(values):
            return known
    return ()
