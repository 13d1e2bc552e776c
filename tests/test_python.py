"""The package for Python: docs/python.md as it stands, tables without pandas, and the notebook.

python -m tests.test_python      writes what the page prints, and the notebook's outputs
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.indexes.resources import known
from crystalperf.query.execution.scenario import settings_of
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.registry import BUILT_IN
from crystalperf.query.sql.rows import Rows
from tests.refusals import refused

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python.md"
NOTEBOOK = ROOT / "examples" / "python" / "demo.ipynb"
_BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```\n|```python\n(.*?)```\n", re.DOTALL)


def executed(code: str, names: dict[str, Any]) -> tuple[str, Any]:
    """The output of some code, and the value of its last line where that is an expression, as in a notebook."""
    parsed = ast.parse(code)
    last = parsed.body[-1] if parsed.body else None
    if isinstance(last, ast.Expr):
        parsed.body.pop()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(ROOT):
        exec(compile(parsed, "<cell>", "exec"), names)
        value = (
            eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if isinstance(last, ast.Expr) else None
        )
    return out.getvalue(), value


@pytest.mark.later
def test_examples_of_the_python_page_print_its_output(demo_run: cp.Run) -> None:
    names: dict[str, Any] = {}
    for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        assert executed(match[1] or match[3], names)[0] == (match[2] or "")


# Tables -------------------------------------------------------------------------------------------------------------


def test_fields_that_answers_list_are_those_they_have(demo_run: cp.Run) -> None:
    debug = demo_run.debug()
    assert debug.rows().column("node_id") == tuple(each.id for each in debug.critical_path)
    sweep = demo_run.sweep(network="2x,4x")
    assert sweep.rows().column("predicted_ms") == tuple(each.predicted_ms for each in sweep.points)
    point = sweep.points[0]
    assert point.rows().column("predicted_ms") == tuple(each.predicted_ms for each in point.stages)
    verdict = demo_run.verdict()
    assert verdict.rows().column("setting") == tuple(each.setting for each in verdict.what_ifs)
    for answer in (debug, sweep, point, verdict):
        assert "<table>" in answer._repr_html_()
    with pytest.raises(dataclasses.FrozenInstanceError):
        debug.rows().columns = ()  # type: ignore[misc]


def test_arrow_has_the_types_of_the_statement(demo_run: cp.Run) -> None:
    pa = pytest.importorskip("pyarrow")
    statement = (
        "SELECT 1::TINYINT AS a, 'x' AS b, [1.5, NULL] AS c, {'k': 1} AS d, MAP {'k': 2} AS e, NULL::BIGINT AS f,"
        " DATE '2026-11-21' AS g, 1.50::DECIMAL(9, 2) AS h, 1 AS m, 2 AS m"
    )
    table = demo_run.sql(statement).arrow()
    assert table.column_names == [*"abcdefgh", "m", "m_2"]
    assert table.schema.field("a").type == pa.int8()
    assert table.schema.field("f").type == pa.int64()
    assert table.to_pylist()[0]["c"] == [1.5, None]
    assert table.to_pylist()[0]["e"] == [("k", 2)]
    assert demo_run.sql("SELECT 1 AS n WHERE false").arrow().schema.field("n").type == pa.int32()


def test_data_frames_name_the_extra_that_they_need(demo_run: cp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = demo_run.sql("SELECT 1 AS n")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for package, extra, made in (("pandas", "pandas", rows.df), ("pyarrow", "arrow", rows.arrow)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=re.escape(f"crystalperf[{extra}]")) as error:
            made()
        assert error.value.name == package
        assert any(each.startswith(package) for each in extras[extra])


# Signatures ---------------------------------------------------------------------------------------------------------


def signatures(name: str) -> Iterator[Callable[..., Any]]:
    """A public function, or the public methods and properties of a class, as far as CrystalPerf defines them."""
    value = getattr(cp, name)
    members = [getattr(each, "fget", each) for _, each in inspect.getmembers(value)] if inspect.isclass(value) else []
    for each in [value, *members]:
        made = inspect.unwrap(each) if callable(each) else None
        if inspect.isfunction(made) and not made.__name__.startswith("_") and made.__module__.startswith("crystalperf"):
            yield made


def test_every_type_that_a_public_signature_names_is_exported() -> None:
    missing, looked_at = set(), 0
    for name in cp.__all__:
        for function in signatures(name):
            module = ast.parse(inspect.getsource(sys.modules[function.__module__]))
            ours = {
                alias.asname or alias.name
                for node in ast.walk(module)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crystalperf")
                for alias in node.names
            } | {node.name for node in module.body if isinstance(node, ast.ClassDef)}
            named = {
                node.id
                for text in function.__annotations__.values()
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Name)
            }
            looked_at += 1
            missing |= {f"{each} of {function.__qualname__}" for each in named & ours - set(cp.__all__)}
    assert looked_at > 30
    assert not missing


def test_every_exported_name_exists() -> None:
    assert all(getattr(cp, each) is not None for each in cp.__all__)
    assert cp.__version__ in cp.__dict__.values()
    with pytest.raises(AttributeError):
        cp.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_keywords_are_the_settings_of_all_built_in_frameworks() -> None:
    words = {word for each in BUILT_IN for word in get(each).vocabulary.settings if word.isidentifier()}
    keys = {each for each in settings_of(known(), in_batches=True) if each.isidentifier()}
    assert cp.Settings.__annotations__.keys() == keys | words | {"device", "precision"}


# Answers ------------------------------------------------------------------------------------------------------------


def test_one_setting_may_be_a_string(demo_run: cp.Run) -> None:
    assert demo_run.predict("network=10x") == demo_run.predict(["network=10x"]) == demo_run.predict(network="10x")
    assert demo_run.sweep("network=2x,4x") == demo_run.sweep(network="2x,4x")
    assert demo_run.predict("network=10x", recorded="network=1Gbit/s") == demo_run.predict(
        ["network=10x"], recorded=["network=1Gbit/s"]
    )


def test_profile_takes_one_path_as_a_string(demo: Path, demo_run: cp.Run) -> None:
    assert cp.profile(str(demo)).path == demo_run.path


@pytest.mark.later
def test_reruns_may_be_runs_or_paths_of_runs_and_logs(demo_run: cp.Run, tmp_path: Path) -> None:
    log = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"
    other = cp.profile(log, output=tmp_path / "other.duckdb")
    rerun_correction = [
        demo_run.predict("cores=2x", reruns=[each]).rerun_correction
        for each in (cp.Other("other", other), other, other.path, str(other.path), log)
    ]
    for each in rerun_correction:
        assert [(one.setting, one.actual_ms) for one in each.reruns] == [
            (one.setting, one.actual_ms) for one in rerun_correction[0].reruns
        ]
        assert each.predicted_ms == rerun_correction[0].predicted_ms
    with pytest.raises(cp.CrystalPerfError, match="no-such-file"):
        demo_run.predict("cores=2x", reruns=["no-such-file"])


def test_repr_is_short_and_has_the_figures(demo_run: cp.Run) -> None:
    functions = cp.index("python-3.11").functions(limit=2)
    shown: list[tuple[object, str]] = [
        (demo_run, "116.2 s"),
        (demo_run.debug(), "49.6 of 116.2 s"),
        (demo_run.verdict(), "49.6 of 116.2 s"),
        (demo_run.predict("network=10x"), "88.8 s"),
        (demo_run.sweep("network=2x,10x"), "88.8 s"),
        (demo_run.sql("SELECT 17 AS n FROM range(1000)"), "1000"),
        (cp.index("python-3.11"), "python-3.11"),
        (functions, str(functions.total)),
        (functions[0], functions[0].label),
    ]
    for value, figure in shown:
        assert figure in repr(value)
        assert len(repr(value)) < 400
        assert repr(value).count("\n") <= 2


def test_a_run_whose_file_is_gone_is_shown_by_its_path(demo_run: cp.Run, tmp_path: Path) -> None:
    copy = cp.Run(Path(shutil.copy(demo_run.path, tmp_path / "gone.duckdb")))
    copy.path.unlink()
    assert str(copy.path) in repr(copy)


def test_notebook_repr_escapes_untrusted_markup() -> None:
    html = Rows(("<b>",), ("VARCHAR",), (("<script>alert(1)</script>",),))._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    shown = [Rows(("n",), ("BIGINT",), tuple((n,) for n in range(count)))._repr_html_() for count in (60, 61)]
    assert ["more" in each for each in shown] == [False, True]


@pytest.mark.parametrize(
    "statement", ["DROP TABLE tasks", "SELECT 1; SELECT 2", "SELECT * FROM read_text('/etc/passwd')", "SET threads = 1"]
)
def test_sql_from_python_reads_the_run_alone(demo_run: cp.Run, statement: str) -> None:
    with pytest.raises(cp.CrystalPerfError):
        demo_run.sql(statement)


def test_values_from_python_are_those_of_duckdb(demo_run: cp.Run) -> None:
    statement = (
        "SELECT 1.50::DECIMAL(9, 2) AS a, [1.5, NULL] AS b, {'k': 1} AS c, MAP {DATE '2026-11-21': 'x'} AS d,"
        " 'nan'::DOUBLE, '-inf'::FLOAT, 170141183460469231731687303715884105727::HUGEINT, '\\xFF'::BLOB,"
        " INTERVAL '3 days 2 seconds', '12345678-1234-5678-1234-567812345678'::UUID, TIME '10:11:12.5',"
        " TIMESTAMP '2026-01-01 10:00:00.25', NULL,"
        " [1, 2, 3]::INTEGER[3], true, 'a'::ENUM('a', 'b'), '101'::BIT, union_value(num := 2), '' FROM range(2)"
    )
    expected = duckdb.sql(statement)
    found = demo_run.sql(statement)
    assert repr(found.rows) == repr(tuple(expected.fetchall()))  # nan is not equal to itself
    assert found.types == tuple(map(str, expected.types))


@pytest.mark.later
def test_cost_of_a_statement_from_python_is_bounded(demo_run: cp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "SELECT levenshtein(repeat('a', 10000000), repeat('b', 10000000))"
    with refused(cp.CrystalPerfError, "1 s"):
        demo_run.sql(endless, timeout_s=1)
    with refused(cp.CrystalPerfError, "1 s"):
        cp.index("python-3.11").sql(endless, timeout_s=1)
    monkeypatch.setattr("crystalperf.query.statements.whole.MAX_BYTES", 1 << 20)
    with refused(cp.CrystalPerfError, "1 MiB"):
        demo_run.sql("SELECT repeat('x', 1000) FROM range(1000000000)")


# Indexes ------------------------------------------------------------------------------------------------------------


def test_functions_are_found_and_paged(own_cache: None) -> None:
    index = cp.index("python-3.11")
    first = index.functions(resource="net", limit=2)
    next_ones = index.functions(resource="net", limit=2, offset=1)
    assert first[1] == next_ones[0]
    assert first.total == next_ones.total > 2
    assert {each.label for each in first} == {"net"}
    for each in first:
        assert sum(each.resources.values()) == pytest.approx(1, abs=0.002)
        assert each.share == max(each.resources.values())
    assert first.rows().column("symbol") == tuple(each.symbol for each in first)
    with refused(cp.CrystalPerfError, "gpu"):
        index.functions(resource="gpu")
    with pytest.raises(cp.CrystalPerfError):
        cp.index("nothing-1.0")


# The notebook -------------------------------------------------------------------------------------------------------


def outputs(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """A cell's outputs as a notebook's file has them."""
    printed, value = executed(code, names)
    found: list[dict[str, Any]] = []
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if value is not None:
        html = getattr(value, "_repr_html_", None)
        data = {"text/html": html().splitlines(keepends=True)} if html else {"text/plain": [repr(value)]}
        found.append({"data": data, "metadata": {}, "output_type": "execute_result"})
    return found


def filled(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook, executed from its first cell to its last."""
    names: dict[str, Any] = {}
    cells = []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            made = outputs("".join(cell["source"]), names)
            for each in made:
                if each["output_type"] == "execute_result":
                    each["execution_count"] = number
            cell = {**cell, "outputs": made, "execution_count": number}
        cells.append(cell)
    return {**notebook, "cells": cells}


@pytest.mark.later
def test_the_notebook_shows_what_it_computes(demo_run: cp.Run) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert sum(cell["cell_type"] == "code" for cell in notebook["cells"]) >= 5
    assert filled(notebook) == notebook


def main() -> None:
    """Write what is printed."""
    names: dict[str, Any] = {}

    def written(match: re.Match[str]) -> str:
        code = match[1] or match[3]
        printed = executed(code, names)[0]
        return f"```python\n{code}```\n" + (f"\n```text\n{printed}```\n" if match[1] else "")

    PAGE.write_text(_BLOCK.sub(written, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    notebook = filled(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main()
