"""Reference pages whose tables come from the code: settings, inputs, resources, environment variables, HTTP API.

python -m tests.test_reference_pages      writes the tables between the marks of the pages again

The tables of versions and deployments need the public logs next to the checkout; without them they stay as they are.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import known
from crystalperf.query.execution.scenario import _EXAMPLES as EXAMPLES
from crystalperf.query.execution.scenario import SCHEDULERS, Setting, parse_settings, settings_of
from crystalperf.query.frameworks.ml.training import devices
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs import bounds, containers, discover, unsupported
from crystalperf.query.inputs.registry import BUILT_IN
from crystalperf.query.text.finding_kinds import with_tables
from crystalperf.query.trace.vocabulary import SettingUnit, Vocabulary
from crystalperf.service.app import ROUTES
from crystalperf.service.settings import Limits

ROOT = Path(__file__).parent.parent
REAL_INPUTS = ROOT.parent / "shared" / "real-inputs"
PAGES = ROOT / "docs" / "reference"
PACKAGES = ("indexes", "indexer", "query", "crystalperf", "report", "service", "fleet", "cli")
ACCELERATOR = (devices.GPU, devices.HBM, devices.LATENCY, devices.PCIE)

Rows = list[tuple[str, ...]]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


# What-if settings -----------------------------------------------------------------------------------------------------


def _settings(vocabulary: Vocabulary | None = None) -> dict[str, Setting]:
    """The settings of a run of any framework by key, with placeholders for names of operators and stages."""
    found = settings_of((*known(), *ACCELERATOR), vocabulary, ["NAME"], {"STAGE": ""}, in_batches=True)
    return {key: each for key, each in found.items() if each.meaning}


def _word(vocabulary: Vocabulary, key: str) -> str:
    """A framework's word for a setting, as answers show it; `same` if that is the key."""
    word = vocabulary.word_of(key)
    if key == "tasks.STAGE":
        word = f"{vocabulary.word_of('tasks')}.{vocabulary.stage.upper()}"
    return "same" if word == key else f"`{word}`"


def _accepted(setting: Setting) -> str:
    return " or ".join(f"`{each}`" for each in setting.choices) if setting.choices else setting.unit


WORDS = {"Spark": "spark", "Flink": "flink", "training": "pytorch"}
TRAININGS = ("pytorch", "tensorflow", "jax", "mxnet")


def settings() -> str:
    devices_only = {each.setting for each in ACCELERATOR}
    rows = []
    for key, each in _settings().items():
        cells = [_word(get(name).vocabulary, key) for name in WORDS.values()]
        if key in devices_only:
            cells[:2] = ["", ""]
        if key == "rate":
            cells[2] = ""
        if key == "trigger":
            cells[1:] = ["", ""]
        rows.append((f"`{key}`", each.meaning, _accepted(each), *cells))
    return table(["setting", "meaning", "values", *WORDS], rows)


def other_words() -> str:
    rows = []
    for title, name in WORDS.items():
        vocabulary = get(name).vocabulary
        for word, key in vocabulary.settings.items():
            if word not in (key, vocabulary.word_of(key)):
                rows.append((title, f"`{word}`", f"`{vocabulary.word_of(key)}`"))
    return table(["runs of", "word", "same as"], rows)


def test_all_trainings_have_the_same_words() -> None:
    assert len({frozenset(get(each).vocabulary.settings.items()) for each in TRAININGS}) == 1
    assert {*TRAININGS, "spark", "flink"} == set(BUILT_IN)


VALUES: dict[SettingUnit, tuple[str, tuple[str, ...]]] = {
    "count": ("a whole number, or a factor", ("8", "2x", "0.5x")),
    "speed": ("a factor on the recorded speed", ("1.5x", "0.5x")),
    "bytes": ("a size, or a factor; `8g` and `8GiB` are 2³⁰, `8GB` is 10⁹", ("8GiB", "8g", "8GB", "512m", "0.5x")),
    "bytes per second": ("a rate, or a factor; `b` is bit, `B` is byte", ("500MB/s", "10Gbps", "40Mbit/s", "2x")),
    "times": ("a factor", ("2x", "0.1x")),
    "seconds": ("a time, or a factor", ("30s", "500ms", "2min", "1h", "2x")),
}


def values() -> str:
    return table(
        ["values", "accepted", "examples"],
        [(unit, what, " ".join(f"`{each}`" for each in examples)) for unit, (what, examples) in VALUES.items()],
    )


@pytest.mark.parametrize("unit", VALUES)
def test_examples_of_values_are_accepted(unit: SettingUnit) -> None:
    setting = {"key": Setting(unit, "of a test")}
    for each in VALUES[unit][1]:
        (parsed,) = parse_settings([f"key={each}"], setting, {}, lists=False)["key"]
        assert (parsed.ratio is not None) == each.endswith("x")
    with pytest.raises(SettingError):
        parse_settings(["key=fast"], setting, {}, lists=False)


def test_every_unit_has_its_values() -> None:
    assert {each.unit for each in _settings().values()} == {*VALUES, "choice"}
    assert set(EXAMPLES) == set(VALUES)
    assert _settings()["scheduler"].choices == SCHEDULERS


RECORDED: dict[str, tuple[str, ...]] = {
    "Spark cluster": ("lab/recordings/demo-q9",),
    "Spark, `local[1]`": ("lab/recordings/gzip-text/1-core",),
    "Flink batch": ("tests/data/flink/join-and-sort.json.gz",),
    "Flink stream": ("tests/data/flink/ads-12000.json.gz", "tests/data/flink/ads-12000.series.gz"),
    "PyTorch, 2 ranks": ("tests/data/training/torch-2-ranks",),
    "TensorFlow, parameter server": ("tests/data/training/tensorflow-ps",),
    "JAX": ("tests/data/jax/mlp.xplane.pb.gz",),
}
"""Runs of this repository, by the column of their answers."""

ASKED = (
    *("cpu_speed=2x", "disk=2x", "network=2x", "workers=2x", "workers=0.5x", "cores=2x", "memory=2x", "memory=0.5x"),
    *("input=2x", "tasks=2x", "skew=none", "scheduler=longest", "operator.NAME=2x", "rate=2x"),
)


def answers() -> str:
    """How each recorded run answers each setting: a prediction with or without a range, or the kind of refusal."""
    columns = []
    with tempfile.TemporaryDirectory() as folder:
        for number, paths in enumerate(RECORDED.values()):
            run = cp.profile([ROOT / each for each in paths], output=Path(folder) / f"{number}.duckdb")
            columns.append([_answer(run, asked) for asked in ASKED])
    rows = [(f"`{asked}`", *cells) for asked, cells in zip(ASKED, zip(*columns, strict=True), strict=True)]
    return table(["setting", *RECORDED], rows)


def _answer(run: cp.Run, asked: str) -> str:
    key, _, value = asked.partition("=")
    if key == "operator.NAME":
        with pytest.raises(SettingError) as error:
            run.predict("operator.=2x")
        listed = re.search(r"it has (?:[\d ]+, of which the nearest are )?([^,]+)", str(error.value))
        if listed is None:
            return "not a setting"
        key = f"operator.{listed[1]}"
    try:
        found = run.predict(f"{run.header().vocabulary.word_of(key)}={value}")
    except SettingError as error:
        return "not a setting" if "is not a setting" in str(error) else "invalid"
    if found.predicted_ms is not None:
        return "range" if found.interval_ms is not None else "no range"
    kinds = ", ".join(f"`{each.kind}`" for each in found.refused)
    return f"bounds: {kinds}" if found.bound_ms is not None and any(found.bound_ms) else kinds


def models() -> str:
    def shown(each: float | None) -> str:
        return "" if each is None else f"{each:g}"

    rows = [
        (name, shown(each.tflops), shown(each.tf32), shown(each.fp32), shown(each.fp8), shown(each.memory_gbps),
         shown(each.memory_gb), shown(each.l2_mb), shown(each.units), shown(each.ghz), each.source, each.checked)
        for name, each in devices.MODELS.items()
    ]  # fmt: skip
    head = ["device", "16-bit", "TF32", "fp32", "fp8", "GB/s", "GB", "L2 [MB]", "units", "GHz", "source", "checked on"]
    return table(head, rows)


# Resources ------------------------------------------------------------------------------------------------------------


def resources() -> str:
    rows = [
        (
            f"`{each.name}`",
            each.device,
            f"`{each.setting}`",
            each.unit,
            {"worker": "tasks of a worker", "host": "tasks of a host", "nobody": "no one"}[each.shared_by],
            ", ".join(f"`{name}`" for name in each.moves),
            "" if each.rate_bps is None else f"{each.rate_bps / 1e6:g} MB/s",
            "" if each.overhead_ms is None or each.buffer_bytes is None
            else f"{each.overhead_ms * 1e3:g} µs per {each.buffer_bytes / 1024:g} KiB",
        )
        for each in (*known(), *ACCELERATOR)
    ]  # fmt: skip
    head = [
        "resource",
        "name in output",
        "setting",
        "unit",
        "shared by",
        "bytes of `tasks`",
        "assumed rate",
        "overhead",
    ]
    return table(head, rows)


# Inputs ---------------------------------------------------------------------------------------------------------------


def logs(folders: Sequence[Path]) -> Iterator[tuple[Path, containers.Part]]:
    """The first part of every Spark log below the folders."""
    for folder in folders:
        for each in sorted({path.parent if "eventlog_v2" in path.parent.name else path for path in files(folder)}):
            try:
                found = discover.discover([each])
            except cp.CrystalPerfError:
                continue
            for application in found.applications:
                if application.framework == "spark":
                    yield each, application.log.parts[0]


def files(folder: Path) -> Iterator[Path]:
    yield from (each for each in folder.rglob("*") if each.is_file() and not each.name.startswith("."))


_VERSION = re.compile(rb'"(?:Spark Version|spark_version|sparkVersion)"\s*:\s*"(\d+\.\d+)')
_MASTER = re.compile(rb'"spark\.master"\s*:\s*"([a-z0-9]+)')
UNKNOWN = "not stated"
DEPLOYMENTS = {
    "local": "one process, `local[N]`, or `local-cluster`",
    "spark": "standalone",
    "yarn": "YARN",
    "k8s": "Kubernetes",
    "emr": "Amazon EMR",
    "databricks": "Databricks",
    UNKNOWN: UNKNOWN,
}


def deployment(start: bytes) -> str:
    """The deployment of a log by its start: marks of vendors, else the master."""
    if b"spark.databricks.clusterUsageTags" in start:
        return "databricks"
    if b"/usr/share/aws/emr" in start:
        return "emr"
    master = _MASTER.search(start)
    return UNKNOWN if master is None else master[1].decode()


def counted(fact: Callable[[bytes], str]) -> tuple[Counter[str], Counter[str]]:
    """How many public logs, and logs of this repository, have each value of a fact of their first MiB."""
    places = (
        [REAL_INPUTS / "spark-eventlog"],
        [ROOT / "lab/recordings", ROOT / "tests/data/spark", ROOT / "tests/data/runs"],
    )
    public, own = (Counter(fact(containers.head(part, 1 << 20)) for _, part in logs(folders)) for folders in places)
    return public, own


def versions() -> str:
    """The versions of Spark whose logs are in the collection of public logs, and in this repository."""

    def version(start: bytes) -> str:
        found = _VERSION.search(start)
        return UNKNOWN if found is None else found[1].decode()

    public, own = counted(version)
    order = sorted({*public, *own}, key=lambda each: [int(number) for number in re.findall(r"\d+", each)])
    rows = [(each, str(public[each] or ""), str(own[each] or "")) for each in order]
    return table(["Spark", "public logs", "logs of this repository"], rows)


def deployments() -> str:
    """The deployments of these logs."""
    public, own = counted(deployment)
    assert {*public, *own} <= set(DEPLOYMENTS)
    rows = [(title, str(public[each] or ""), str(own[each] or "")) for each, title in DEPLOYMENTS.items()]
    return table(["deployment", "public logs", "logs of this repository"], rows)


def refused() -> str:
    rows = dict.fromkeys((each.what, each.advice) for each in unsupported.KINDS)
    return table(["file", "instead"], list(rows))


def input_limits() -> str:
    stops = "reading stops there, and the answer says so"
    most = bounds.Bounds()
    bomb = f"{most.ratio:.0f} times its size, from {bounds.ALWAYS_BYTES >> 20} MiB on"
    rows = [
        ("a file of a log, unpacked", f"{most.gib:.0f} GiB", stops),
        ("a line of a log", f"{containers.LONGEST_LINE >> 20} MiB", "a longer one is cut to its start and end"),
        ("files in a folder or a zip", f"{discover._MAX_FILES}", "refused: name the folder of one application"),
        ("a URL that can only be read once", f"{containers._MAX_COPIED_BYTES >> 30} GiB", "refused: download the log"),
        ("a stream that unpacks to much more", bomb, stops),
    ]
    return table(["input", "at most", "beyond that"], rows)


# HTTP API -------------------------------------------------------------------------------------------------------------


def routes() -> str:
    rows = []
    for each in ROUTES:
        if not each.page:
            asked = [parameter for parameter in each.parameters if parameter.where == "query"]
            names = ", ".join(f"`{parameter.name}`" for parameter in asked)
            body = "JSON" if each.body else ""
            body = ", ".join(filter(None, [body, *each.form]))
            statuses = ", ".join(map(str, sorted({*each.answers, *each.problems})))
            rows.append((f"`{each.method} {each.path}`", each.description, names, body, statuses))
    return table(["request", "answer", "parameters", "body", "statuses"], rows)


MEANINGS: dict[str, tuple[str, str]] = {
    "upload_bytes": ("total size of one upload", "413"),
    "upload_files": ("files of one upload", "413"),
    "uploads": ("concurrent uploads", "429"),
    "silent_s": ("longest pause of a client", "408"),
    "slow_after_s": ("time after which a body must arrive fast enough", "408"),
    "slowest_bps": ("lowest rate of a body after that, bytes a second", "408"),
    "body_bytes": ("size of a JSON body", "413"),
    "jobs": ("concurrent profiling jobs", "the job waits"),
    "waiting_jobs": ("waiting profiling jobs", "429"),
    "job_s": ("time of a job", "the job fails"),
    "job_memory_bytes": ("memory of a job", "the job fails"),
    "job_file_bytes": ("disk of a job", "the job fails"),
    "sql": ("concurrent SQL statements", "the statement waits"),
    "waiting_sql": ("waiting statements", "429"),
    "sql_s": ("time of a statement", "422"),
    "sql_memory_bytes": ("memory of a statement", "422"),
    "sql_answer_bytes": ("answer of a statement", "413"),
    "sql_runs": ("runs in one statement of `/api/sql`", "413"),
    "query_processes": ("processes that answer questions", "the question waits"),
    "waiting_questions": ("waiting questions", "503"),
    "question_s": ("time of a question", "503"),
    "question_memory_bytes": ("memory of a question", "422"),
    "query_process_bytes": ("memory of a process after an answer", "none: the process is replaced"),
    "answers_bytes": ("cached answers in memory", "none: older ones are dropped"),
    "events": ("clients that follow a job", "503"),
}
"""The meaning of each limit of the service, and the status of a request beyond it."""


def _amount(name: str, value: float) -> str:
    if not name.endswith("_bytes"):
        return f"{value:.0f}{' s' if name.endswith('_s') else ''}"
    scale, unit = next((1 << shift, unit) for shift, unit in ((30, "GiB"), (20, "MiB")) if value >= 1 << shift)
    return f"{value / scale:g} {unit}"


def limits() -> str:
    rows = [
        (f"`{each.name}`", f"{each.default:.0f}", _amount(each.name, each.default), *MEANINGS[each.name])
        for each in fields(Limits)
    ]
    return table(["limit", "default", "", "what it limits", "beyond it"], rows)


# Environment variables ------------------------------------------------------------------------------------------------


def environment(path: Path) -> set[str]:
    """Names of the variables that a module reads from os.environ."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def name(node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.Name), f"{path}:{node.lineno}: a variable whose name the code computes"
        return str(constants.get(node.id, ""))

    def is_environ(node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "environ"

    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            reads = is_environ(node.func.value) and node.func.attr in ("get", "pop", "setdefault")
            if reads or node.func.attr == "getenv":
                found.add(name(node.args[0]))
        elif isinstance(node, ast.Subscript) and is_environ(node.value) and isinstance(node.ctx, ast.Load):
            found.add(name(node.slice))
        elif isinstance(node, ast.Compare) and any(is_environ(each) for each in node.comparators):
            found.add(name(node.left))
    return found


RESTORES = ROOT / "fleet" / "engines.py"
"""It sets variables for Spark's processes, and restores them by name."""


def read_variables() -> set[str]:
    folders = [ROOT / each for each in PACKAGES if each != "crystalperf"]
    modules = [each for folder in folders for each in folder.rglob("*.py")]
    modules += [ROOT / "setup.py", *(ROOT / "crystalperf").glob("*.py")]
    return {name for each in modules if each != RESTORES for name in environment(each)}


# The pages ------------------------------------------------------------------------------------------------------------

TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "settings": {
        "settings": settings,
        "other words": other_words,
        "values": values,
        "answers": answers,
        "devices": models,
    },
    "inputs": {"versions": versions, "deployments": deployments, "limits": input_limits, "refused files": refused},
    "resources": {"resources": resources},
    "http-api": {"routes": routes, "limits": limits},
}
PUBLIC = {"versions": versions, "deployments": deployments}
SLOW = ("answers", *PUBLIC)


def between(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)


def written(text: str, tables: dict[str, str]) -> str:
    for mark, rows in tables.items():
        assert len(between(mark).findall(text)) == 1, f"the page has no marks of the table {mark}"
        text = between(mark).sub(lambda _match, rows=rows: rows, text)  # type: ignore[misc]
    return with_tables(text)


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_current(name: str) -> None:
    quick = {mark: make() for mark, make in TABLES[name].items() if mark not in SLOW}
    assert page(name) == written(page(name), quick), "write them again with `python -m tests.test_reference_pages`"


def test_answers_are_those_of_the_recorded_runs() -> None:
    assert page("settings") == written(page("settings"), {"answers": answers()})


def test_versions_and_deployments_are_those_of_the_public_logs(real_inputs: Path) -> None:
    assert page("inputs") == written(page("inputs"), {mark: make() for mark, make in PUBLIC.items()})


def test_guide_for_spark_has_the_numbers_of_public_logs() -> None:
    guide = (ROOT / "docs" / "how-to" / "record-spark.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\| ([^|,]+)[^|]* \|.*\| (\d+) \| [^|]+ \|$", guide, re.MULTILINE))
    rows = between("deployments").findall(page("inputs"))[0].splitlines()[2:]
    listed = {row.split(" | ")[0].removeprefix("| "): row.split(" | ")[1] for row in rows}
    names = {"your laptop": DEPLOYMENTS["local"]}
    assert len(found) == 6
    assert found == {each: listed[names.get(each, each)] for each in found}


def test_settings_page_explains_every_answer() -> None:
    text = page("settings")
    rows = between("answers").findall(text)[0].splitlines()[2:]
    kinds = {each for row in rows for each in re.findall(r"`([a-z-]+)`", row.partition(" | ")[2])}
    assert {"not-modelled-for-streams", "slots-fixed", "local-run"} <= kinds
    assert all(f"| `{each}` |" in between("refusals").findall(text)[0] for each in kinds)


def test_every_shipped_file_of_the_inputs_page_is_read_as_it_says() -> None:
    rows = re.findall(r"^\| .*`((?:lab|tests)/[^`]+)` \| (\w+)", page("inputs"), re.MULTILINE)
    assert len(rows) >= 10
    for path, kind in rows:
        found = discover.discover([ROOT / path])
        assert {each.framework for each in found.applications} == ({kind} & set(BUILT_IN)), path
        assert found.applications or {each.kind for each in found.samples} == {kind}, path


def test_inputs_page_has_every_framework() -> None:
    text = page("inputs")
    assert all(f"| {get(name).title}" in text for name in BUILT_IN)


def test_every_resource_has_its_sources() -> None:
    text = page("resources").partition("<!-- end of resources -->")[2]
    assert all(re.search(rf"^\| `{each.name}` \| \w", text, re.MULTILINE) for each in (*known(), *ACCELERATOR))


def test_page_lists_the_variables_that_the_code_reads() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", page("environment").partition("## That libraries read")[0], re.MULTILINE)
    assert set(listed) == read_variables()
    assert len(set(listed)) == len(listed) >= 8


def test_each_way_to_read_a_variable_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'NAME = "E"\nos.environ.get("A")\nos.environ["B"]\nos.environ.pop(NAME)\nos.getenv("C")\n'
        'if "D" in os.environ: pass\nos.environ["SET"] = "1"\n'
    )
    assert environment(module) == {"A", "B", "C", "D", "E"}


def test_each_limit_of_the_service_is_explained() -> None:
    assert list(MEANINGS) == [each.name for each in fields(Limits)]


def main() -> None:
    """Write the tables again."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["CRYSTALPERF_HOME"] = home
        for name, tables in TABLES.items():
            made = {mark: make() for mark, make in tables.items() if mark not in PUBLIC or REAL_INPUTS.is_dir()}
            (PAGES / f"{name}.md").write_text(written(page(name), made), encoding="utf-8")


if __name__ == "__main__":
    main()
