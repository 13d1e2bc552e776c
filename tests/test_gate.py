"""`crystalperf gate`: budgets, outcomes, exit codes and the files for CI systems, on real runs of one job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

import crystalperf as cp
from crystalperf.cli.gate_formats import github, gitlab, junit, markdown
from crystalperf.cli.main import _repeated
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.compare.budgets import budget, of_file, slowdown, together
from crystalperf.query.compare.gate import slower
from crystalperf.query.compare.noise import difference, kind_of
from crystalperf.query.results.gate import BaselineTooNoisy, Budget, Check, Gate, MetricMissing
from tests.refusals import is_one_line, refused

ROOT = Path(__file__).parent.parent
LOGS = sorted((ROOT / "lab" / "recordings" / "again" / "q6").glob("base-*/eventlog"))
"""The same query, three times within an hour."""
KIND = kind_of("spark", "runtime")
WORDS = {"shuffle": "exchanged"}

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("gate")
    return [str(cp.profile([log], output=folder / f"run-{number}.duckdb").path) for number, log in enumerate(LOGS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runtime=10m", Budget("runtime", "runtime", "ms", 600_000.0, "10m")),
        ("runtime=90", Budget("runtime", "runtime", "ms", 90_000.0, "90")),
        ("step=250ms", Budget("step", "step", "ms", 250.0, "250ms")),
        ("spill=1GB", Budget("spill", "spill", "bytes", 1e9, "1GB")),
        ("spill=0", Budget("spill", "spill", "bytes", 0.0, "0")),
        ("shuffle=2GiB", Budget("shuffle", "exchanged", "bytes", 2.0**31, "2GiB")),
        ("gc=10%", Budget("gc", "gc", "share", 0.1, "10%")),
        ("failures=0", Budget("failures", "failures", "count", 0.0, "0")),
        (
            "predicted[cores=0.5x, network=2x]=20m",
            Budget(
                "predicted[cores=0.5x, network=2x]", "predicted", "ms", 1_200_000.0, "20m", ("cores=0.5x", "network=2x")
            ),
        ),
    ],
)
def test_a_budget_has_a_metric_and_a_limit_in_its_unit(text: str, expected: Budget) -> None:
    assert budget(text, WORDS) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("runtime", "runtime"),
        ("runtme=10m", "did you mean runtime"),
        ("runtime=soon", "10m"),
        ("runtime=1GB", "10m"),
        ("spill=1min", "1GB"),
        ("gc=10ms", "10%"),
        ("gc=10", "gc=10%"),
        ("predicted[]=10m", "predicted"),
        ("runtime=-1", "10m"),
    ],
)
def test_a_wrong_budget_is_refused(text: str, named: str) -> None:
    with refused(SettingError, named):
        budget(text, WORDS)


def test_budgets_of_a_file_and_of_flags(tmp_path: Path) -> None:
    file = tmp_path / "crystalperf.toml"
    file.write_text(
        '[gate]\nmax-slowdown = "5%"\n[gate.max]\nruntime = "10m"\nfailures = 0\n"predicted[cores=2x]" = "5m"\n'
    )
    found = of_file(file, WORDS)
    assert [(each.name, each.limit) for each in found] == [
        ("runtime", 600_000.0),
        ("failures", 0.0),
        ("predicted[cores=2x]", 300_000.0),
        ("slowdown", 0.05),
    ]
    both = together([budget("runtime=1m", WORDS), slowdown("20%")], found)
    assert {each.name: each.limit for each in both}["runtime"] == 60_000.0
    assert {each.name: each.limit for each in both}["slowdown"] == 0.2
    with refused(SettingError, "runtime"):
        together([budget("runtime=1m", WORDS), budget("runtime=2m", WORDS)], [])
    with refused(SettingError, "shuffle", "exchanged"):
        together([], [budget("shuffle=1GB", WORDS), budget("exchanged=2GB", WORDS)])
    other_word = together([budget("shuffle=2GB", WORDS)], [budget("exchanged=1GB", WORDS)])
    assert [(each.name, each.limit) for each in other_word] == [("shuffle", 2e9)]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[gate\n", "line 1"),
        ("[gate]\nmin = 3\n", "'min'"),
        ("[gate.max]\nruntme = '1m'\n", "runtme"),
        ("[gate.max]\nruntime = [1]\n", "runtime"),
        ("[gate.max]\nruntime = true\n", "runtime"),
        ("gate = 3\n", "gate"),
        ("[gate]\nmax = 3\n", "gate.max"),
        ("[gate]\nmax-slowdown = 'much'\n", "max-slowdown"),
        ("[gate]\nmax-slowdown = 10\n", "max-slowdown=10%"),
    ],
)
def test_errors_of_a_file_are_one_sentence_with_its_name(content: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(content)
    with refused(InputError, file, named):
        of_file(file, WORDS)
    file.write_bytes(b"\xff\xfe")
    with refused(InputError, file):
        of_file(file, WORDS)


def test_slowdowns_are_over_within_or_undecided() -> None:
    limit = slowdown("10%")

    def check(before: list[float], after: list[float]) -> Check:
        return slower(limit, difference(before, after, KIND), before, after, KIND)

    quiet = [100.0, 101.0, 99.0, 100.5, 99.5]
    assert check(quiet, quiet).outcome == "within"
    assert check(quiet, [1.3 * each for each in quiet]).outcome == "over"
    assert check(quiet, [0.5 * each for each in quiet]).outcome == "within"
    alone = check([100.0], [104.0])
    assert (alone.outcome, alone.runs) == ("undecided", 1)
    assert isinstance(alone.undecided, BaselineTooNoisy)
    assert alone.undecided.runs_needed is not None
    assert 2 < alone.undecided.runs_needed <= 50
    near = check([100.0, 130.0, 80.0], [110.0, 140.0, 90.0])
    assert isinstance(near.undecided, BaselineTooNoisy)
    assert near.undecided.runs_needed is None


def test_exit_code_0_within(runs: list[str], crystalperf: Call) -> None:
    code, out, err = crystalperf("gate", *runs, "--max", "runtime=10m", "--max", "shuffle=1GB", "--max", "failures=0")
    assert (code, err) == (0, "")
    assert out.startswith("Within all 3 budgets.")


def test_exit_code_3_over(runs: list[str], crystalperf: Call) -> None:
    code, out, _ = crystalperf("gate", *runs, "--max", "runtime=10s", "--max", "gc=50%", "--json")
    answer = json.loads(out)
    assert (code, answer["outcome"]) == (3, "over")
    assert [each["outcome"] for each in answer["checks"]] == ["over", "within"]
    durations = sorted(cp.open_run(each).header().duration_ms for each in runs)
    assert answer["checks"][0]["value"] == pytest.approx(durations[1])


def test_exit_code_4_undecided(runs: list[str], crystalperf: Call) -> None:
    code, out, _ = crystalperf("gate", runs[0], "--baseline", runs[1], "--json")
    (check,) = json.loads(out)["checks"]
    assert (code, check["outcome"], check["limit"]) == (4, "undecided", 0.1)
    assert check["difference"]["source"] == "typical spread"
    assert check["undecided"]["kind"] == "baseline-too-noisy"
    code, out, _ = crystalperf("gate", runs[0], "--max", "step=1s", "--json")
    assert (code, json.loads(out)["checks"][0]["undecided"]["kind"]) == (4, "metric-missing")


def test_exit_code_1_unreadable(tmp_path: Path, crystalperf: Call) -> None:
    code, out, err = crystalperf("gate", tmp_path / "nothing.log", "--max", "runtime=1m")
    assert (code, out) == (1, "")
    is_one_line(err, "nothing.log")


def test_a_log_without_its_end_is_not_within(crystalperf: Call) -> None:
    log = ROOT / "lab" / "recordings" / "odd" / "cut-off.zstd"
    code, out, _ = crystalperf("gate", log, "--max", "runtime=10m", "--max", "failures=0", "--max", "gc=100%", "--json")
    checks = {each["name"]: each for each in json.loads(out)["checks"]}
    assert (code, checks["runtime"]["outcome"], checks["gc"]["outcome"]) == (4, "undecided", "within")
    assert checks["runtime"]["undecided"]["kind"] == "logs-incomplete"
    code, out, _ = crystalperf("gate", log, "--max", "runtime=1ms", "--json")
    assert code == 3


def test_predictions_have_budgets(runs: list[str], crystalperf: Call) -> None:
    point = cp.open_run(runs[0]).predict("cores=0.5x")
    assert point.interval_ms is not None
    low, high = point.interval_ms
    for limit, expected in ((0.9 * low, 3), ((low + high) / 2, 4), (1.1 * high, 0)):
        code, out, _ = crystalperf("gate", runs[0], "--max", f"predicted[cores=0.5x]={limit:.0f}ms", "--json")
        (check,) = json.loads(out)["checks"]
        assert code == expected
        assert (check["low"], check["high"]) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))
    code, out, _ = crystalperf("gate", runs[0], "--max", "predicted[network=2x,network=3x]=1m")
    assert (code, out) == (1, "")


def test_repeated_runs_of_the_same_job_are_not_over(runs: list[str], crystalperf: Call) -> None:
    code, out, _ = crystalperf("gate", runs[0], "--baseline", *runs[1:], "--max-slowdown", "50%", "--json")
    (check,) = json.loads(out)["checks"]
    assert code == 0
    assert (check["difference"]["runs_before"], check["difference"]["runs_after"]) == (2, 1)


def test_budgets_come_from_the_file_of_the_folder(
    runs: list[str], crystalperf: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = crystalperf("gate", runs[0])
    assert code == 1
    is_one_line(err, "crystalperf.toml")
    Path("crystalperf.toml").write_text('[gate.max]\nspill = "1GB"\nruntime = "1s"\n')
    code, out, _ = crystalperf("gate", runs[0], "--format", "github")
    assert code == 3
    assert re.search(r"^::error file=crystalperf\.toml,line=3,title=", out, re.MULTILINE)
    code, _, _ = crystalperf("gate", runs[0], "--max", "runtime=10m")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["{0}", "{0}", "--max", "runtime=1m"], "twice"),
        (["{0}", "--baseline", "{0}"], "both sides"),
        (["{0}", "--max-slowdown", "10%"], "--baseline"),
        (["{0}", "--max", "runtime=1m", "--format", "html"], "markdown"),
        (["{0}", "--max", "runtime=1m", "--format", "junit=/nowhere/x.xml"], "/nowhere/x.xml"),
        (["{0}", "--config", "/nowhere/x.toml"], "/nowhere/x.toml"),
        (["{0}", "--max", "runtime=1m", "--format", "github", "--format", "markdown"], "standard output"),
        (["{0}", "--max", "runtime=1m", "--format", "junit={0}"], "input"),
        (["{0}", "--max", "runtime=1m", "--format", "junit=x", "--format", "markdown=x"], "two formats"),
    ],
)
def test_a_wrong_request_is_one_sentence(arguments: list[str], named: str, runs: list[str], crystalperf: Call) -> None:
    code, out, err = crystalperf("gate", *(each.format(*runs) for each in arguments))
    assert (code, out) == (1, "")
    is_one_line(err, named)


def test_one_baseline_option_takes_all_that_a_shell_expands() -> None:
    given = ["gate", "a", "--baseline", "b", "c", "--max", "runtime=1m"]
    assert _repeated(given, "gate", "--baseline") == [
        "gate", "a", "--baseline", "b", "--baseline", "c", "--max", "runtime=1m",
    ]  # fmt: skip
    assert _repeated(["gate", "--baseline", "b", "--", "a"], "gate", "--baseline") == [
        "gate",
        "--baseline",
        "b",
        "--",
        "a",
    ]
    assert _repeated(["debug", "--baseline", "b", "c"], "gate", "--baseline") == ["debug", "--baseline", "b", "c"]


HOSTILE = 'a | b <img src=x> `c` %0A ::error::\x1b[31m @all "q" & \ud800'


def made() -> Gate:
    checks = (
        Check("runtime", "runtime", "ms", 1e3, "1s", "over", 2e3, None, None, 1),
        Check("spill", "spill", "bytes", 1e9, "1GB", "within", 0.0, None, None, 1),
        Check("step", "step", "ms", 1e3, "1s", "undecided", None, None, None, 0, MetricMissing("step")),
    )
    return Gate("over", HOSTILE, "Apache Spark", "runtime", ("a",), (), checks)


def test_junit_has_a_case_for_each_budget() -> None:
    suites = ElementTree.fromstring(junit(made(), None).encode("utf-8"))
    (suite,) = suites
    for each in (suites, suite):
        assert (each.get("tests"), each.get("failures"), each.get("errors")) == ("3", "1", "1")
    assert [[each.tag for each in case] for case in suite] == [["failure"], ["system-out"], ["error"]]


def test_junit_is_valid_for_its_schema(tmp_path: Path) -> None:
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed (pip install -e '.[dev]')")
    schema = xmlschema.XMLSchema(str(ROOT / "tests" / "data" / "junit.xsd"))
    file = tmp_path / "gate.xml"
    file.write_text(junit(made(), None), encoding="utf-8")
    schema.validate(str(file))
    file.write_text(file.read_text(encoding="utf-8").replace('failures="1"', 'failures="one"'), encoding="utf-8")
    assert not schema.is_valid(str(file))


def test_markdown_is_a_table_without_markup_of_a_log() -> None:
    text = markdown(made(), None)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    kinds = [each.type for each in tokens]
    assert kinds.count("table_open") == 1
    assert kinds.count("tr_open") == 4
    assert kinds.count("td_open") == 15
    inline = [child.type for each in tokens if each.children for child in each.children]
    assert "html_inline" not in inline
    assert "@all" not in text


def test_annotations_of_github_are_one_line_each() -> None:
    lines = github(made(), None).splitlines()
    assert [re.match(r"::(\w+) title=[^:,]*::", each)[1] for each in lines] == ["error", "notice", "warning"]  # type: ignore[index]


def test_code_quality_of_gitlab_has_the_fields_that_it_reads() -> None:
    entries = json.loads(gitlab(made(), None))
    assert [each["severity"] for each in entries] == ["major", "minor"]
    assert all(each.keys() == {"description", "check_name", "fingerprint", "severity", "location"} for each in entries)
    assert len({each["fingerprint"] for each in entries}) == 2
    assert all(isinstance(each["location"]["lines"]["begin"], int) and each["location"]["path"] for each in entries)
