"""A profiled run: open its run file, analyse it, predict scenarios."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from shutil import copyfile
from threading import local
from typing import TYPE_CHECKING

import duckdb

from crystalperf import indexes as contract
from crystalperf.indexes import guard, store
from crystalperf.indexes.cache import spare_folder
from crystalperf.indexes.errors import CrystalPerfError, InputError, NoAnswerError, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.temporary import building_folder
from crystalperf.query.advise import configurations, machine_prices, verdict
from crystalperf.query.advise.candidates import candidates
from crystalperf.query.advise.tuning import Tuner
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.diagnose import diagnosed
from crystalperf.query.diagnose.stage_statistics import Diagnosis
from crystalperf.query.execution.execution import Execution, work_of
from crystalperf.query.execution.load import ALL, WHOLE, load, max_concurrent, run_resources
from crystalperf.query.execution.scenario import (
    Configuration,
    Scenario,
    Value,
    combinations,
    is_unchecked,
    parse_settings,
    recorded_resources,
    scenario_of,
    settings_of,
)
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.reader import Reader
from crystalperf.query.page.frontend import PLAIN_FRONTEND, Frontend
from crystalperf.query.predict import registry
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.lab_errors import lab_error
from crystalperf.query.predict.named import predicted_by
from crystalperf.query.predict.reruns import Compared, advice, apply_reruns, check_framework, compared, differences
from crystalperf.query.predict.scenario_replay import SharedBaseline, replay_baseline
from crystalperf.query.results.answers import (
    Advice,
    Choice,
    Debug,
    Header,
    NamedPrediction,
    Prediction,
    Predictions,
    ReadingProblem,
    Sweep,
    Verdict,
    WorkerSize,
)
from crystalperf.query.results.recommendations import Candidate
from crystalperf.query.results.refusals import InvalidQuestion, Refusal, RefusedError
from crystalperf.query.results.tuning import Goal, Tuning
from crystalperf.query.simulate.list_schedule import has_compiled
from crystalperf.query.sql.rows import TIMEOUT_S, Rows
from crystalperf.query.streaming.batch_cost import is_about_batches, predict_batches
from crystalperf.query.streaming.diagnose import diagnose_flow, flow_candidates
from crystalperf.query.streaming.predict import predict_stream
from crystalperf.query.text import notebook as notebook  # registers rows and sentences of answers
from crystalperf.query.text.figures import time_unit
from crystalperf.query.text.sentences import text_of

if TYPE_CHECKING:
    from typing import Unpack

    from crystalperf.query.frameworks.registry import Settings
    from crystalperf.query.ledger.matching import KnownRun
    from crystalperf.query.results.comparison import Comparison
    from crystalperf.query.results.comparison_page import ComparisonPage
    from crystalperf.query.results.ledger import Ledger
    from crystalperf.query.results.page import PageData


RUNS_TO_ADVISE = ("workers=2x", "cores=2x", "memory=2x", "workers=0.5x", "cores=0.5x", "memory=0.5x")
"""Further runs that a user can make on the same machines, besides one with nothing changed."""

_PREDICTIONS_KEPT = 128


class Run:
    """One run file.  Opening is cheap; each analysis reads what it needs and caches the last scopes in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        store.checked(path, "run")  # raises here, not at the first analysis, if the path is not a run file
        self._held = local()
        self._header = lru_cache(maxsize=1)(self._read_header)
        self._load = lru_cache(maxsize=2)(self._load_scope)
        self._replay = lru_cache(maxsize=2)(self._replay_scope)
        self._diagnosed = lru_cache(maxsize=2)(self._diagnose_scope)
        self._predictions: dict[Hashable, Prediction] = {}

    def __repr__(self) -> str:
        try:
            header = self.header()
        except CrystalPerfError:  # the file was deleted or damaged after opening
            return f"<Run {str(self.path)!r}>"
        version = f" {header.framework_version}" if header.framework_version else ""
        took = time_unit(header.duration_ms).text(header.duration_ms)
        return f"<Run {header.name!r}, {header.framework_title}{version}, {took}, {str(self.path)!r}>"

    def header(self) -> Header:
        """Name, framework, duration and size of the run, and problems of reading it."""
        return self._header()

    def _read_header(self) -> Header:
        with self._opened() as connection:
            facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
            run = connection.execute(
                """
                SELECT app_id, name, framework, framework_version, measure, duration_ms, complete, properties FROM runs
                """
            ).fetchall()[0]
            workers = connection.execute(
                """
                SELECT added_ms, removed_ms, slots FROM workers
                WHERE slots > 0 OR (slots IS NULL AND worker_id IN (SELECT DISTINCT worker_id FROM tasks))
                """
            ).fetchall()
            problems = connection.execute(
                """
                SELECT severity, meaning, name, count FROM import_stats
                ORDER BY list_position(['error', 'data loss', 'info'], severity), count DESC, rowid
                """
            ).fetchall()
            samples = connection.execute("SELECT 1 FROM samples LIMIT 1").fetchone()
            resources = run_resources(connection)
        framework = get(run[2])
        properties, shown_workers = dict(run[7] or {}), framework.planner.shown_workers
        configured = {} if framework.planner.configured is None else framework.planner.configured(properties)
        repeated = run[4] == "step time" and {"steps", "step_ms"} <= properties.keys()
        max_slots = max((slots for _, _, slots in workers if slots is not None), default=None)
        if "cores" not in configured:
            max_slots = framework.planner.shown_slots(max_slots, properties)
        if max_slots == 0:
            workers, max_slots = [], None
        sizes = Counter(slots for _, _, slots in workers if slots)
        return Header(
            app_id=run[0],
            name=run[1] or run[0],
            framework=framework.name,
            framework_title=framework.title,
            framework_version=run[3],
            measure=run[4],
            workers=shown_workers(max_concurrent((added, removed) for added, removed, _ in workers), properties),
            workers_in_all=shown_workers(len(workers), properties),
            slots_per_worker=round(configured["cores"]) if "cores" in configured else max_slots,
            duration_ms=run[5],
            complete=run[6],
            problems=tuple(_problem(framework.reader, *each) for each in problems),
            indexes=tuple(json.loads(facts.get("indexes", "[]"))),
            has_samples=samples is not None,
            resources=resources,
            vocabulary=framework.vocabulary,
            steps=int(properties["steps"]) if repeated else None,
            step_ms=float(properties["step_ms"]) if repeated else None,
            traced_step_ms=float(properties["traced_step_ms"]) if "traced_step_ms" in properties else None,
            step_interval_ms=(float(properties["step_low_ms"]), float(properties["step_high_ms"]))
            if "step_low_ms" in properties
            else None,
            excluded_settings=tuple(sorted(framework.planner.excluded_settings(properties))),
            worker_sizes=tuple(WorkerSize(slots, count) for slots, count in sorted(sizes.items()))
            if framework.planner.sizes_workers and len(sizes) > 1
            else (),
        )

    def verdict(self, progress: Callable[[str], None] = lambda _: None, *, paged: bool = False) -> Verdict:
        """The bottleneck, where the time went, what-ifs, recommendations, and the next step.

        `progress` receives a short description of each step.  `paged` is whether a page follows, which uses the same
        predictions in more detail: then they are computed in full now.
        """
        with self._opened():
            return verdict.verdict(self, progress, path=paged)

    def page_data(
        self,
        verdict: Verdict | None = None,
        frontend: Frontend = PLAIN_FRONTEND,
        progress: Callable[[str], None] = lambda _: None,
        *,
        full: bool = False,
    ) -> PageData:
        """The data of the run's page: the verdict, a grid of what-ifs, the tasks over time, the DAG, stacks.

        `verdict` is computed if it is not given; `frontend` words what a user can do.  For runs with many tasks the
        grid has fewer settings, unless `full`, which can take long.  `progress` receives a description of each step.
        """
        from crystalperf.query.page.page import page_data

        answer = self.verdict(progress, paged=True) if verdict is None else verdict
        with self._opened() as connection:
            execution = self._load("all")
            return page_data(
                self, connection, execution, answer, frontend, progress, compiled=has_compiled(), full=full
            )

    @contextmanager
    def redacted(self) -> Iterator[Run]:
        """The same run with its private names replaced by pseudonyms; its file is deleted at the end of the block.

        All answers about it, and their JSON, have the same pseudonyms (query.runfile.anonymize).
        """
        with redacted([self]) as (found,):
            yield found

    def export(self, to: str, output: str | Path, *, replace: bool = False) -> None:
        """Write the run for another tool: `to` is speedscope, collapsed, pprof, perfetto, otlp or parquet.

        `output` is a file, for parquet a folder; an existing one is replaced only with `replace`.  Raises SettingError
        for an unknown format, InputError if the place cannot be written, NoAnswerError if the run has no stacks.
        """
        from crystalperf.query.export.formats import export

        export(self, to, Path(output), replace=replace)

    def debug(self, scope: str = "all") -> Debug:
        """Critical path, seconds on each resource along it, bottleneck (paper §4.2).

        `scope` is `all` (without pauses of a shell or notebook), `whole` (with them), the id of a scope, or
        `START..END` in ms since application start.
        """
        return self._diagnosed(scope).debug

    def _diagnose_scope(self, scope: str) -> Diagnosis:
        with self._opened() as connection:
            execution = self._load(scope)
            if execution.stream is None:
                found = diagnosed(connection, execution, self._advisor())
            else:
                found = Diagnosis(diagnose_flow(connection, execution, self._advisor()))
            debug = replace(found.debug, in_batches=execution.micro_batches is not None)
            return replace(found, debug=verdict.completed(debug, self.header()))

    def _execution(self, scope: str = "all") -> Execution:
        """A scope of the run as arrays: stages, tasks, slots, and the driver's time."""
        return self._load(scope)

    execution = _execution  # for packages of query: an Execution is not part of the public interface

    def candidates(self, debug: Debug) -> list[Candidate]:
        """Candidate recommendations for the whole run, whose diagnosis is `debug`; query.advise.ranking ranks them."""
        with self._opened() as connection:
            execution = self._load("all")
            if execution.stream is not None:
                return flow_candidates(execution, self._advisor(), debug)
            return candidates(connection, execution, self._advisor(), replace(self._diagnosed("all"), debug=debug))

    def _advisor(self) -> Advisor:
        return get(self.header().framework).advisor

    def predict(
        self,
        settings: str | Sequence[str] = (),
        *,
        recorded: str | Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        predictor: str | None = None,
        reruns: Sequence[Other | Run | str | Path] = (),
        path: bool = True,
        **changes: Unpack[Settings],
    ) -> Prediction:
        """The runtime under changed resources: `predict("cores=2x")` or `predict(cores="2x")` (paper §5).

        Several settings are one scenario; for several values of one setting use sweep().  `recorded` states resources
        of the run that its log does not record.  `replan` is whether stages are repartitioned as the framework would
        for other slots, or keep their recorded tasks (the paper).  `predictor` is the name of another
        model (query.predict.registry), or of another package's.
        `reruns` are other runs of the job, or paths of them, which correct the prediction and narrow its interval
        (query.predict.rerun_errors).  `path` is whether to compute the predicted critical path by resource
        (resource_ms), a quarter of the work.  If no prediction is possible, `refused` says why.  Raises SettingError
        for an invalid setting.
        """
        texts = _texts(settings, changes)
        try:
            scenario = self._scenario(texts, recorded, scope)
            others, runs = self._others(predictor, reruns, recorded, scope, replan)
        except RefusedError as error:
            return self.baseline(scope).refusing(", ".join(texts), error.refusal)
        answer = self._predicted(scenario, scope, replan, predictor, runs, path=path)
        return apply_reruns(scenario, answer, others)

    def predictions(
        self,
        settings: str | Sequence[str] = (),
        *,
        recorded: str | Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        reruns: Sequence[Other | Run | str | Path] = (),
        progress: Callable[[str], None] = lambda _: None,
        **changes: Unpack[Settings],
    ) -> Predictions:
        """One scenario by every predictor, CrystalPerf's own first; the rest is as in predict().

        A predictor that has no answer says why in its `refused`.  Raises SettingError for an invalid setting.
        """
        texts = _texts(settings, changes)
        try:
            changed = self._scenario(texts, recorded, scope)
        except RefusedError:  # then each predictor refuses it
            changed = Scenario()
        found = []
        for name in registry.names():
            progress(f"what if, by {name}")
            source, lab = "", lab_error(self._load(scope), name, changed)
            try:
                other = None if name == registry.CRYSTALPERF else registry.find(name)
                source = "" if other is None else other.source
                runs = reruns if other is None or other.least_runs else ()
                answer = self.predict(
                    texts, recorded=recorded, scope=scope, replan=replan, predictor=name, reruns=runs, path=False
                )
            except (SettingError, InputError) as error:
                answer = self.baseline(scope).refusing(", ".join(texts), InvalidQuestion(str(error)))
            found.append(NamedPrediction(name, source, answer, lab))
        first = found[0].prediction
        return Predictions(first.scope, first.measure, first.setting, first.runtime_ms, tuple(found), first.words)

    def sweep(
        self,
        settings: str | Sequence[str] = (),
        *,
        recorded: str | Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        predictor: str | None = None,
        reruns: Sequence[Other | Run | str | Path] = (),
        progress: Callable[[str], None] = lambda _: None,
        **changes: Unpack[Settings],
    ) -> Sweep:
        """One prediction for each combination of listed values: `sweep("cores=2,4,8")`; the rest is as in predict().

        Of several combinations, an invalid one, such as half of one worker, has its error in `refused`; a single
        invalid one raises SettingError.  `progress` receives a short description of each step.
        """
        progress("reading the run")
        wanted, known = self._parsed(_texts(settings, changes), recorded, scope, lists=True)
        several, amounts = combinations(wanted), _amounts(wanted)
        try:
            others, runs = self._others(predictor, reruns, recorded, scope, replan)
        except RefusedError as error:
            baseline = self.baseline(scope)
            return Sweep(
                tuple(baseline.refusing(Scenario(each).describe(), error.refusal) for each in several), amounts
            )
        points: list[Prediction] = []
        for chosen in several:
            progress(f"what if: {Scenario(chosen).describe()}")
            try:
                scenario = scenario_of(chosen, known)
                points.append(apply_reruns(scenario, self._predicted(scenario, scope, replan, predictor, runs), others))
            except (RefusedError, SettingError) as error:
                if len(several) == 1 and isinstance(error, SettingError):
                    raise
                points.append(self.baseline(scope).refusing(Scenario(chosen).describe(), _refusal(error)))
        return Sweep(tuple(points), amounts)

    def advise(
        self,
        settings: str | Sequence[str] = (),
        *,
        recorded: str | Sequence[str] = (),
        reruns: Sequence[Other | Run | str | Path] = (),
    ) -> Advice:
        """Recommend the next run of the job to record: the one that narrows the intervals of these settings most.

        Without `settings`, the usual what-ifs count.
        """
        header = self.header()
        usual = [each.setting for each in verdict.usual_what_ifs(header)]
        others = self._comparable(reruns, recorded)
        wanted = [self._answered(text, recorded) for text in (_listed(settings) or usual)]
        runs = [self._answered(text, recorded) for text in RUNS_TO_ADVISE]
        same = scenario_of({}, self._load("all").recorded)
        known = [each for each in runs if each is not None]
        return advice([each for each in wanted if each is not None], [(same, self.baseline()), *known], others)

    def _advised(self, setting: str) -> Advice | None:
        """The next run that narrows the range of a tuned configuration most; None if no range can be narrowed."""
        texts = setting.split(", ") if setting else []
        scenario = self._scenario(texts, (), ALL)
        tuned = replace(self.ranged(texts) if texts else self.baseline(), setting=setting or "unchanged")
        same = scenario_of({}, self._load(ALL).recorded), self.baseline()
        usual = [self._answered(text, ()) for text in RUNS_TO_ADVISE]
        found = advice([(scenario, tuned)], [(scenario, tuned), same, *(each for each in usual if each)], [])
        return found if found.questions else None

    def priced(
        self,
        machines: Path,
        ran_on: str,
        *,
        counts: Sequence[int] = (),
        deadline_ms: float | None = None,
        recorded: str | Sequence[str] = (),
        reruns: Sequence[Other | Run | str | Path] = (),
        progress: Callable[[str], None] = lambda _: None,
    ) -> Choice:
        """Predict runtime and cost on other machine types; query.advise.machine_prices has the table's columns.

        `ran_on` is the machine type of the recorded run, one worker on each; `counts` are the numbers of machines to
        predict.  Raises NoAnswerError if the run's number of workers is unknown.
        """
        known, execution = machine_prices.read_machines(machines), self._load("all")
        workers, cores = execution.recorded.get("workers"), execution.recorded.get("cores")
        if not workers:
            raise NoAnswerError(f"the run does not record how many {execution.words.vocabulary.workers} it had")
        others, offers = self._comparable(reruns, recorded), []
        for each in machine_prices.questions(
            known, ran_on, int(workers), None if cores is None else int(cores), counts
        ):
            progress(f"{each.workers} × {each.machine.name}")
            try:
                scenario = self._scenario(each.settings, recorded, "all")
                offers.append(
                    machine_prices.offer(
                        each, apply_reruns(scenario, self._predicted(scenario, "all", True, None), others)
                    )
                )
            except (RefusedError, SettingError) as error:
                offers.append(machine_prices.offer(each, self.baseline().refusing("", _refusal(error))))
        here = machine_prices.PriceRequest(next(each for each in known if each.name == ran_on), int(workers), ())
        return machine_prices.chosen(self.baseline(), here, offers, deadline_ms)

    def _tuned_job(self, name: str) -> configurations.Job:
        """The run as a search for a configuration needs it.  Raises NoAnswerError if its framework has no such part."""
        find, execution = self._advisor().tunable, self._load(ALL)
        if find is None:
            raise NoAnswerError(f"{name}: CrystalPerf does not know which settings of {execution.title} to tune")
        with self._opened() as connection:
            found = find(connection, execution)
        checked = execution.planner.checked_settings(execution)
        return configurations.Job(name, found, self.baseline(), self.ranged, checked, len(execution.tasks))

    def ranged(self, texts: Sequence[str]) -> Prediction:
        """A prediction with a range even for settings whose effect no rerun has verified; the range includes that these
        have no effect."""
        try:
            scenario = self._scenario(texts, (), ALL)
        except (RefusedError, SettingError) as error:
            return self.baseline().refusing(", ".join(texts), _refusal(error))
        execution, base = self._load(ALL), self._replay(ALL)
        if execution.stream is not None:
            return predict_stream(execution, execution.stream, scenario)
        if execution.micro_batches is not None and is_about_batches(scenario):
            return predict_batches(execution, execution.micro_batches, scenario)
        found = predict(execution, scenario, base=base, path=False, unverified=True)
        checked = execution.planner.checked_settings(execution)
        sure = {key: each for key, each in scenario.changes.items() if not is_unchecked(key) or key in checked}
        if found.interval_ms is None or len(sure) == len(scenario.changes):
            return found
        without = self._predicted(scenario_of(sure, scenario.recorded), ALL, True, None, path=False)
        ends = (*found.interval_ms, without.predicted_ms or found.interval_ms[0])
        return replace(found, interval_ms=(min(ends), max(ends)))

    def _answered(self, setting: str, recorded: str | Sequence[str]) -> tuple[Scenario, Prediction] | None:
        """The scenario of a setting for the whole run and its prediction; None if it is refused or invalid."""
        try:
            scenario = self._scenario([setting], recorded, "all")
            return scenario, self._predicted(scenario, "all", True, None)
        except (RefusedError, SettingError):
            return None

    def _comparable(self, reruns: Sequence[Other | Run | str | Path], recorded: str | Sequence[str]) -> list[Compared]:
        """Other runs of the job as evidence; raises NoAnswerError if one cannot be compared."""
        try:
            return self._compared(reruns, recorded, ALL, True)
        except RefusedError as error:
            raise NoAnswerError(text_of(error.refusal, self._load(ALL).words)) from error

    def _compared(
        self, reruns: Sequence[Other | Run | str | Path], recorded: str | Sequence[str], scope: str, replan: bool
    ) -> list[Compared]:
        """Other runs of the job, each with this run's prediction for its scenario.  Raises RefusedError."""
        found = []
        for each in self._distinct(reruns, scope):
            execution, other = self._load(scope), each.run._load(scope)
            texts = differences(execution, other, each.name, each.settings)
            if not texts:
                scenario, prediction = scenario_of({}, execution.recorded), self.baseline(scope)
            else:
                scenario = self._scenario(texts, recorded, scope)
                prediction = self._predicted(scenario, scope, replan, None)
            found.append(compared(each.name, scenario, prediction, other.runtime_ms))
        return found

    def _others(
        self,
        predictor: str | None,
        reruns: Sequence[Other | Run | str | Path],
        recorded: str | Sequence[str],
        scope: str,
        replan: bool,
    ) -> tuple[list[Compared], tuple[Execution, ...]]:
        """Other runs of the job for a predictor: for CrystalPerf's own with its predictions, else as they are."""
        if predictor in (None, registry.CRYSTALPERF):
            return self._compared(reruns, recorded, scope, replan), ()
        if reruns and not registry.find(predictor).least_runs:
            raise SettingError(f"'{predictor}' predicts from one run; leave out the other runs of the job")
        found = []
        for each in self._distinct(reruns, scope):
            other = each.run._load(scope)
            check_framework(self._load(scope), other, each.name)
            _, known = each.run._parsed((), each.settings, scope, lists=False)
            found.append(replace(other, recorded=known))
        return [], tuple(found)

    def _distinct(self, reruns: Sequence[Other | Run | str | Path], scope: str) -> Iterator[Other]:
        """The other runs of the job; raises SettingError for a run given twice, and for a part of a run."""
        if reruns and scope not in (ALL, WHOLE):
            raise SettingError("other runs of the job apply to predictions of the whole run only, not to one scope")
        seen = {self._identity(): "the run itself"}
        for each in map(_other, reruns):
            identity = each.run._identity()
            if identity in seen:
                raise SettingError(f"{each.name}: is {seen[identity]}, so it adds nothing; name another run of the job")
            seen[identity] = f"the same run as {each.name}"
            yield each

    def _identity(self) -> Hashable:
        """The key that identifies a run, independent of its file and of whether it has samples."""
        with self.reading() as connection:
            columns = "framework, app_id, attempt, started_at_ms, duration_ms"
            return tuple(connection.execute(f"SELECT {columns} FROM runs").fetchall()[0])

    def _scenario_of(self, setting: str, scope: str = "all", recorded: Sequence[str] = ()) -> Scenario:
        """The scenario of settings as Prediction.setting has them.  Raises RefusedError, SettingError."""
        return self._scenario(setting.split(", "), recorded, scope)

    scenario = _scenario_of  # for packages of query: a Scenario is not part of the public interface

    def _scenario(self, texts: Sequence[str], recorded: str | Sequence[str], scope: str) -> Scenario:
        chosen, known = self._parsed(texts, recorded, scope, lists=False)
        return scenario_of({key: value for key, (value,) in chosen.items()}, known)

    def what_if(
        self,
        settings: str | Sequence[str],
        *,
        recorded: str | Sequence[str] = (),
        scope: str = "all",
        replan: bool = True,
        predictor: str | None = None,
        reruns: Sequence[Other | Run | str | Path] = (),
        progress: Callable[[str], None] = lambda _: None,
    ) -> Prediction | Sweep:
        """Predict settings as a user typed them: one prediction, or one for each listed value, as in sweep().

        If no prediction is possible, `refused` says why.  Raises SettingError.
        """
        found = self.sweep(
            settings,
            recorded=recorded,
            scope=scope,
            replan=replan,
            predictor=predictor,
            reruns=reruns,
            progress=progress,
        )
        return found if len(found.points) > 1 else found.points[0]

    def _parsed(
        self, texts: Sequence[str], recorded: str | Sequence[str], scope: str, *, lists: bool
    ) -> tuple[dict[str, tuple[Value, ...]], Configuration]:
        """The requested values by setting, and the recorded configuration with what `recorded` states."""
        execution = self._load(scope)
        words = execution.words.vocabulary.settings
        settable = settings_of(
            execution.resources,
            execution.words.vocabulary,
            execution.operators,
            {each.stage_id: each.name for each in execution.dag.stages},
            is_stream=execution.stream is not None,
            in_batches=execution.micro_batches is not None,
        )
        settable.update(execution.planner.settings)
        expanded = [
            one for text in texts for one in execution.planner.expand(text, execution.names, execution.properties)
        ]
        wanted = parse_settings(expanded, settable, words, lists=lists)
        stated = parse_settings(_listed(recorded), settable, words, lists=False)
        return wanted, recorded_resources({**execution.recorded, **work_of(execution)}, stated)

    def _stated(self, settings: Sequence[str]) -> dict[str, str]:
        """Settings of a run that its user states, KEY=VALUE, by key.  Raises SettingError."""
        chosen, _ = self._parsed(settings, (), "all", lists=False)
        return {key: value.text for key, (value,) in chosen.items()}

    def _predicted(
        self,
        scenario: Scenario,
        scope: str,
        replan: bool,
        predictor: str | None,
        runs: Sequence[Execution] = (),
        *,
        path: bool = True,
    ) -> Prediction:
        execution = self._load(scope)
        if predictor not in (None, registry.CRYSTALPERF):
            return predicted_by(predictor, execution, scenario, self.baseline(scope), runs)
        if execution.stream is not None:
            return predict_stream(execution, execution.stream, scenario)
        if execution.micro_batches is not None and is_about_batches(scenario):
            return predict_batches(execution, execution.micro_batches, scenario)
        base = self._replay(scope)
        key = (scope, replan, path, scenario.describe(), tuple(sorted(scenario.recorded.items())))
        if key not in self._predictions:  # a page repeats the verdict's predictions
            if len(self._predictions) >= _PREDICTIONS_KEPT:
                self._predictions.clear()
            self._predictions[key] = predict(execution, scenario, base=base, replans=replan, path=path)
        return self._predictions[key]

    def sql(self, statement: str, *, indexes: Sequence[str] = (), timeout_s: float = TIMEOUT_S) -> Rows:
        """The rows of one SELECT over the tables and views of the run and of `indexes`, by default those of the run.

        A separate, read-only, locked process runs it, with limits on memory, result size and time: `timeout_s` seconds,
        0 for no limit.  Raises SettingError for an invalid statement, NoAnswerError past a limit, IndexFileError for a
        missing index.
        """
        from crystalperf.query.statements.whole import answer

        return answer(statement, self.path, indexes, timeout_s)

    def _repr_html_(self) -> str:
        return self.verdict()._repr_html_()

    def baseline(self, scope: str = "all") -> Prediction:
        """The prediction of the baseline: a scope with nothing changed."""
        return self._predicted(scenario_of({}, self._load(scope).recorded), scope, True, None)

    def _load_scope(self, scope: str) -> Execution:
        with self._opened() as connection:
            execution = load(connection, scope)
            if execution.planner.micro_batches is not None:
                return replace(execution, micro_batches=execution.planner.micro_batches(connection, execution))
            if execution.planner.exchange is not None:
                return replace(execution, exchange=execution.planner.exchange(connection, execution))
            if execution.planner.stream is None:
                return execution
            stream = execution.planner.stream(connection, execution)
        if stream is None:  # then only its duration is known
            return replace(execution, measure="makespan")
        return replace(execution, stream=stream, measure="throughput" if stream.at_limit else "latency")

    def _replay_scope(self, scope: str) -> SharedBaseline:
        execution = self._load(scope)
        try:
            return replay_baseline(execution)
        except RefusedError as error:  # without a baseline replay there is no prediction at all
            raise NoAnswerError(text_of(error.refusal, execution.words)) from error

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The locked, read-only connection, shared with analyses inside the block."""
        return self._opened()

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for the duration of an analysis; nested analyses share it."""
        held: duckdb.DuckDBPyConnection | None = getattr(self._held, "connection", None)
        if held is not None:
            yield held
            return
        connection = contract.open_read_only(self.path, "run")
        self._held.connection = connection
        try:
            with guard.damage_as_error(self.path, "run"):
                yield connection
        finally:
            self._held.connection = None
            connection.close()


@contextmanager
def redacted(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """The same runs with their private names replaced by pseudonyms, a name by the same one in all of them.

    Their files are deleted at the end of the block.
    """
    from crystalperf.query.runfile.anonymize import anonymize_names

    with building_folder(spare_folder() / "redacted") as folder:  # the next use removes that of a killed process
        copies = [folder / f"run-{number}.duckdb" for number in range(1, len(runs) + 1)]
        for run, copy in zip(runs, copies, strict=True):
            copy.touch(mode=0o600)
            copyfile(run.path, copy)
        names = [f"shared_{number}" for number in range(len(runs))]
        with guard.fresh() as connection:
            for name, copy in zip(names, copies, strict=True):
                connection.execute(f"ATTACH {guard.quoted(str(copy))} AS {name}")
            frameworks = [get(each.header().framework) for each in runs]
            anonymize_names(connection, dict(zip(names, frameworks, strict=True)))
            connection.execute("USE memory")
            for name in names:
                connection.execute(f"DETACH {name}")
        yield [Run(each) for each in copies]


def compare(
    before: Other | Run | str | Path | Sequence[Other | Run | str | Path],
    after: Other | Run | str | Path | Sequence[Other | Run | str | Path],
    *,
    scope: str = "all",
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Runs of a job before and after a change: whether the runtime changed beyond noise, and by which causes.

    A side is a run, the path of a run file or of a log, or several of them, which are pooled.  `scope` is the part of
    every run to compare, as in Run.debug().  `progress` receives a short description of each step.  Raises InputError
    if the runs are of different frameworks, or if one is given twice.
    """
    from crystalperf.query.compare.compare import Given
    from crystalperf.query.compare.compare import compared as compared_sides
    from crystalperf.query.ledger.recall import recalled

    one, other = ([Given(each.run, each.name, scope) for each in _listed_runs(side)] for side in (before, after))
    return compared_sides(one, other, progress, recalled)


def ledger(runs: Sequence[Other | Run | str | Path] = (), *, job: str = "", backtest: bool = False) -> Ledger:
    """The predictions in the user's ledger, held against the runs that came later.

    Those are the runs of which the ledger has facts, and `runs`: run files or logs, with settings that no log records
    (Other.settings).  `job` is a part of the names of the jobs to show.  With `backtest`, runs that started before the
    prediction count as well.  Raises SettingError if the ledger is off, InputError if it cannot be read.
    """
    return ledger_with((), runs, job=job, backtest=backtest)


def ledger_with(
    known: Sequence[KnownRun], runs: Sequence[Other | Run | str | Path], *, job: str, backtest: bool
) -> Ledger:
    """The answer of ledger() with further runs whose facts are known, such as those of a fleet."""
    from crystalperf.query.ledger.facts import facts_of
    from crystalperf.query.ledger.matching import KnownRun
    from crystalperf.query.ledger.scoring import scored
    from crystalperf.query.ledger.store import VARIABLE, is_writable, place, read

    path = place()
    if path is None:
        raise SettingError(f"the ledger is off, because {VARIABLE} says so; give the path of its file there")
    now_ms, more = 1e3 * time.time(), list(known)
    for each in map(_other, runs):
        facts = facts_of(each.run)
        if facts is not None:
            more.append(KnownRun(facts, now_ms, each.run._stated(each.settings)))
    return scored(path, read(path), more, job=job, backtest=backtest, writable=is_writable(path))


def tune(
    runs: Other | Run | str | Path | Sequence[Other | Run | str | Path],
    *,
    goal: Goal = "time",
    limits: str | Sequence[str] = (),
    deadline_ms: float | None = None,
    prices: Path | None = None,
    ran_on: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """The configuration with which a job is predicted to be fastest, or cheapest: every setting that predictions cover.

    `runs` are recorded runs of one job; for several, it is the best for the run that gains least.  `limits` are the
    most that it may ask for, `cores=32` and `memory=64GiB` of all workers and `workers=8`; by default what the runs
    had.  The goal `cost` takes no longer than the recorded run, or than `deadline_ms`.  `prices` and `ran_on` are as in
    Run.priced().  `progress` receives a short description of each step.  Raises InputError if the runs are of different
    frameworks, SettingError for an invalid limit.
    """
    others = _listed_runs(runs)
    _check_different([each.run for each in others], [each.name for each in others])
    first = others[0].run
    if wrong := next((each for each in others if each.run.header().framework != first.header().framework), None):
        raise InputError(f"{wrong.name}: is a run of another framework than {others[0].name}; tune one job at a time")
    known = configurations.prices_of(prices, ran_on)
    wanted = configurations.limits_of(_listed(limits), first.header().vocabulary, deadline_ms)
    jobs = [each.run._tuned_job(each.name) for each in others]
    answer = Tuner(configurations.Grid(jobs, goal, wanted, known), progress).tune()
    return replace(answer, advice=first._advised(answer.setting))


def comparison_page(
    before: Other | Run | str | Path | Sequence[Other | Run | str | Path],
    after: Other | Run | str | Path | Sequence[Other | Run | str | Path],
    *,
    scope: str = "all",
    answer: Comparison | None = None,
    redact: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ComparisonPage:
    """The data of the page of a comparison: that of compare(), timelines, and the difference of sampled stacks.

    `answer` is the comparison of these runs, if already computed.  With `redact`, names are replaced by pseudonyms as
    in Run.redacted(), by the same ones in all runs.
    """
    from crystalperf.query.compare.compare import Given
    from crystalperf.query.compare.compare import compared as compared_sides
    from crystalperf.query.ledger.recall import recalled
    from crystalperf.query.page.comparison import comparison_page as page_of

    sides = [_listed_runs(each) for each in (before, after)]
    runs = [each.run for side in sides for each in side]
    names = [each.name for side in sides for each in side]
    _check_different(runs, names)
    if redact:
        progress("replacing names")
        names = [f"{side} {number}" for side, of in zip(("before", "after"), sides, strict=True)
                 for number in range(1, len(of) + 1)]  # fmt: skip
    with redacted(runs) if redact else nullcontext(runs) as shown:
        given = [Given(run, name, scope) for run, name in zip(shown, names, strict=True)]
        count = len(sides[0])
        found = answer
        if found is None or redact:
            found = compared_sides(given[:count], given[count:], progress, recalled)
        return page_of(found, shown[:count], shown[count:], progress, redacted=redact)


def _listed_runs(given: Other | Run | str | Path | Sequence[Other | Run | str | Path]) -> list[Other]:
    """The runs of a side: one, or several."""
    return [_other(each) for each in ([given] if isinstance(given, Other | Run | str | Path) else given)]


def _check_different(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Raise InputError if a run is given twice."""
    seen = dict[Path, str]()
    for run, name in zip(runs, names, strict=True):
        if run.path in seen:
            raise InputError(f"{name}: is the same run as {seen[run.path]}; name another run of the job")
        seen[run.path] = name


@frozen
class Other:
    """Another run of the same job: a name for it, and its resources that its log does not record (KEY=VALUE)."""

    name: str
    run: Run
    settings: tuple[str, ...] = ()


def _problem(reader: Reader, severity: str, meaning: str, name: str, count: int) -> ReadingProblem:
    """A problem of reading the input, with its count in the meaning unless the reader counts it there already."""
    says = meaning if count == 1 or name in reader.counted_problems else f"{meaning} ({count} times)"
    return ReadingProblem(severity, says, name, count)


def _refusal(error: RefusedError | SettingError) -> Refusal:
    """The refusal of one of several settings."""
    return error.refusal if isinstance(error, RefusedError) else InvalidQuestion(str(error))


def _other(given: Other | Run | str | Path) -> Other:
    """Another run, from itself or from the path of a run file or a log.  Raises InputError, IndexFileError."""
    if isinstance(given, Other):
        return given
    if isinstance(given, Run):
        return Other(given.path.stem, given)
    if store.kind_of(Path(given)) is not None:
        return Other(str(given), Run(Path(given)))
    from crystalperf.query.runfile.pipeline import profile_inputs

    return Other(str(given), Run(profile_inputs([given], None, None, (), lambda _: None)))


def _listed(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts


def _texts(settings: str | Sequence[str], changes: Mapping[str, object]) -> list[str]:
    texts = [*_listed(settings), *(f"{key}={value}" for key, value in changes.items())]
    if not texts:
        raise SettingError("no change is given: name a setting and its new value, for example cores=2x")
    return texts


def _amounts(wanted: dict[str, tuple[Value, ...]]) -> tuple[float, ...]:
    """Sweep.amounts: the values of the one resource that varies, all absolute or all relative; empty otherwise."""
    if len(wanted) != 1:
        return ()
    ((key, values),) = wanted.items()
    if is_unchecked(key):  # more data, or more and smaller tasks, add no resources
        return ()
    for amounts in ([each.absolute for each in values], [each.ratio for each in values]):
        known = tuple(each for each in amounts if each is not None)
        if len(known) == len(values):
            return known
    return ()
