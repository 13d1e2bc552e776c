"""Collect the answers of one version of CrystalPerf, at every interface.

A self-contained script, which uses of a version only its console command and `import crystalperf`:

    PYTHONPATH=CHECKOUT python -P asking.py JOB.json OUT.json

The job has the checkout, and for each input its name, its files and whether to use all interfaces or only the main
commands.
"""

from __future__ import annotations

import gc
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

PREDICTIONS = (
    ("--set", "cores=0.5x"),
    ("--set", "workers=0.5x,3x"),
    ("--set", "network=0.25x,4x", "--recorded", "network=1Gbps"),
    ("--set", "cores=2x", "--set", "disk=2x", "--set", "cpu_speed=1.5x"),
)
"""Predictions for every run, in addition to those of `analyze`."""
MORE_PREDICTIONS = (
    ("--set", "cores=2x", "--no-replan"),
    ("--set", "cpu_speed=0.5x"),
    ("--set", "disk=0.25x", "--recorded", "disk=200MB/s"),
    ("--set", "memory=0.75x"),
    ("--set", "input=2x", "--set", "skew=none"),
)
MACHINES = """name,price_per_hour,cores,memory,network,disk,cpu_speed
small,0.4,2,8GiB,1Gbps,100MB/s,1
large,1.5,8,32GiB,10Gbps,500MB/s,1.2
"""
VIEWS = (
    *("critical_path", "findings", "stage_resources", "scope_resources", "worker_resources", "operator_resources"),
    *("task_skew", "hot_functions", "waits", "spark_stage_resources"),
)
IN_ORDER = ("critical_path", "findings")
"""Views whose order is significant."""
TABLES = ("runs", "stages", "operators", "functions", "findings", "problems")
"""Tables of a fleet."""


def main(job_file: str, to: str) -> None:
    """Answers by input and request."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    os.nice(job["nice"])
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(CRYSTALPERF_HOME=f"{folder}/home", NO_COLOR="1", CRYSTALPERF_ENTRY=job["command"])
        Path(folder, "home").mkdir()
        Path(folder, "machines.csv").write_text(MACHINES, encoding="utf-8")
        with ProcessPoolExecutor(job["processes"]) as pool:
            asked = [pool.submit(of_input, job, each, folder) for each in job["inputs"]]
            answers = {each["name"]: done.result() for each, done in zip(job["inputs"], asked, strict=True)}
        shared = [each for each in job["inputs"] if each["shared"]]
        if shared:
            runs = [Path(folder, f"{_file(each['name'])}.duckdb") for each in shared]
            answers["fleet"] = of_fleet([path for each in shared for path in each["paths"]], folder)
            answers["service"] = of_service(runs, folder)
            answers["indexes"] = of_indexes()
    text = json.dumps(answers, ensure_ascii=False)
    Path(to).write_text(_masked(text, folder, job["roots"]), encoding="utf-8")


def of_input(job: Mapping[str, Any], given: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The answers for one input."""
    began = time.process_time()
    kept = f"{folder}/{_file(given['name'])}.duckdb"
    ask = Asker()
    answers = {"analyze": ask("analyze", *given["paths"], "-o", kept, "--json")}
    apps = re.findall(r"--app: (.*)", answers["analyze"].get("sentence", ""))
    for app in apps[0].split(", ") if apps else ():
        app = app.split()[0]
        answers[f"analyze {app}"] = ask("analyze", *given["paths"], "-o", kept, "--force", "--json", "--app", app)
    if Path(kept).exists():
        ids = [each["id"] for each in answers["analyze"].get("debug", {}).get("scopes", ())]
        for scope in ("whole", *ids[-1:], *(("0..10000", "sql:9999") if given["thorough"] else ())):
            answers[f"debug {scope}"] = ask("debug", kept, "--scope", scope, "--json")
        for question in (*PREDICTIONS, *(MORE_PREDICTIONS if given["thorough"] else ())):
            answers[" ".join(("predict", *question))] = ask("predict", kept, *question, "--json")
        if given["thorough"]:
            answers |= _thoroughly(ask, kept, folder)
            answers |= _in_python(kept)
    print(f"{time.process_time() - began:6.1f} CPU s  {given['name']}", file=sys.stderr, flush=True)
    return answers


def _thoroughly(ask: Asker, kept: str, folder: str) -> dict[str, Any]:
    """The slower requests of the command line."""
    prices = ("--set", "workers=2,4", "--prices", f"{folder}/machines.csv", "--on", "small", "--deadline", "10m")
    page = f"{kept}.html"
    answers = {
        "prices": ask("predict", kept, *prices, "--json"),
        "advise": ask("advise", kept, "--json"),
        "advise workers=4x": ask("advise", kept, "--set", "workers=4x", "--json"),
        "predict --with": ask("predict", kept, "--set", "cores=2x", "--with", kept, "--json"),
        "report": ask("report", kept, "-o", page, "--force"),
    }
    if Path(page).exists():
        found = re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", Path(page).read_text("utf-8"), re.S)
        answers["report"] = json.loads(found[1]) if found else {"sentence": "a page without data"}
    for view in VIEWS:
        rows = ask("sql", "--run", kept, f"FROM {view}" + ("" if view in IN_ORDER else " ORDER BY ALL"), "--json")
        answers[f"sql {view}"] = {view: rows} if isinstance(rows, list) else rows
    return answers


def _in_python(kept: str) -> dict[str, Any]:
    """The answers of the Python API for a run."""
    import crystalperf as cp

    run = cp.open_run(kept)

    def said(ask: Callable[[], Any]) -> Any:
        try:
            answer = ask()
        except cp.CrystalPerfError as error:
            return {"error": type(error).__name__, "sentence": str(error)}
        if hasattr(answer, "types"):
            return {"columns": list(answer.columns), "types": list(answer.types), "rows": _dicts(answer)}
        return {**cp.as_json(answer), "table": _dicts(answer.rows()) if hasattr(answer, "rows") else []}

    return {
        "python header": said(run.header),
        "python debug": said(run.debug),
        "python verdict": said(run.verdict),
        "python predict": said(lambda: run.predict(cores="2x")),
        "python sweep": said(lambda: run.sweep(workers="2x,4x")),
        "python sql": said(lambda: run.sql("SELECT stage_id, status, submit_ms, end_ms FROM stages ORDER BY ALL")),
    }


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [{name: _plain(row[name]) for name in rows.columns} for row in rows]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def of_indexes() -> dict[str, Any]:
    """The answers from the shipped indexes."""
    import crystalperf as cp

    found = cp.index("spark-4.0.1").functions(class_name="ShuffleBlockFetcherIterator", limit=20)
    statement = "SELECT label, count(*) AS n, sum(share) AS share FROM labelled GROUP BY ALL ORDER BY ALL"
    counted = _dicts(cp.index("jdk-17").sql(statement))
    return {"functions": {"functions": _dicts(found.rows()), "total": found.total}, "labels": {"labels": counted}}


def of_fleet(logs: Sequence[str], folder: str) -> dict[str, Any]:
    """The tables and the summary of a fleet of these logs."""
    import duckdb

    ask = Asker()
    built = ask("fleet", "build", *logs, "-o", f"{folder}/fleet", "--processes", "1", "--json")
    built.pop("seconds", None)
    asked = ask("fleet", "ask", f"{folder}/fleet", "--top", "0", "--json")
    if asked.get("savings"):  # settings without a saving are ordered by rounding errors of 1e-18 hours
        asked["savings"].sort(key=lambda each: (-round(each["saved_hours"], 9), each["setting"]))
    answers = {"build": built, "ask": asked}
    for table in TABLES:
        files = f"read_parquet('{folder}/fleet/{table}/*/*.parquet', file_row_number=true, filename=true)"
        key = "path, severity, 6" if table == "problems" else "run_id, filename, file_row_number"
        with duckdb.connect() as connection:
            try:
                columns = "* EXCLUDE (day, filename, file_row_number)"
                found = connection.execute(f"SELECT {columns} FROM {files} ORDER BY {key}")
            except duckdb.IOException:  # a table without rows
                continue
            names = [each[0] for each in found.description]
            rows = [{n: _plain(v) for n, v in zip(names, row, strict=True)} for row in found.fetchall()]
        answers[f"table {table}"] = {table: rows}
    return answers


def of_service(runs: Sequence[Path], folder: str) -> dict[str, Any]:
    """The answers of a service over these runs."""
    home = Path(folder, "served")
    (home / "runs").mkdir(parents=True)
    if Path(folder, "home", "indexes").exists():
        (home / "indexes").symlink_to(Path(folder, "home", "indexes"))
    for each in runs:
        shutil.copy(each, home / "runs")
    counted = "SELECT run, count(*) AS n FROM runs.tasks GROUP BY ALL ORDER BY ALL"
    with _serving(home) as get:
        answers = {
            "runs": get("/api/runs?limit=100&sort=run"),
            "indexes": get("/api/indexes"),
            "sql": get("/api/sql", {"statement": counted, "runs": None}),
            "function": get("/api/functions?name=HashMap.putVal&index=jdk-17&why=true"),
            "functions": get("/api/indexes/jdk-17/functions?class=HashMap&resource=cpu&limit=20"),
            "resolve": get("/api/resolve", {"frames": ["at java.util.HashMap.get(HashMap.java:564)"]}),
        }
        for run in [quote(each.stem) for each in runs]:
            answers |= {
                f"run {run}": get(f"/api/runs/{run}"),
                f"verdict {run}": get(f"/api/runs/{run}/verdict"),
                f"debug {run}": get(f"/api/runs/{run}/debug?scope=whole"),
                f"predict {run}": get(f"/api/runs/{run}/predict?set=cores=2x"),
                f"sweep {run}": get(f"/api/runs/{run}/predict", {"settings": ["workers=2x,4x"]}),
                f"rows {run}": get(f"/api/runs/{run}/sql", {"statement": "FROM findings"}),
            }
    return answers


@contextmanager
def _serving(home: Path) -> Iterator[Callable[..., Any]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    module, _, name = os.environ["CRYSTALPERF_ENTRY"].partition(":")
    code = f"from {module} import {name}; {name}()"
    typed = [sys.executable, "-c", code, "serve", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen(typed, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def get(path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
        try:
            with urlopen(asked, timeout=300) as answer:
                found = json.loads(answer.read())
        except HTTPError as error:
            found = {"status": error.code, **json.loads(error.read())}
        return found if isinstance(found, dict) else {"rows": found}

    try:
        for _ in range(600):
            try:
                get("/health")
                break
            except OSError:
                time.sleep(0.1)
        yield get
    finally:
        process.terminate()
        process.wait(60)


class Asker:
    """The console command of a version, in this process."""

    def __init__(self) -> None:
        gc.freeze = lambda: None  # the command freezes remaining objects, because its process ends

    def __call__(self, *arguments: str) -> Any:
        """The JSON that it printed, or the sentence; with the exit code, unless that is 0."""
        module, _, name = os.environ["CRYSTALPERF_ENTRY"].partition(":")
        answer, refusal, code = io.StringIO(), io.StringIO(), 0
        sys.argv = ["crystalperf", *arguments]
        with redirect_stdout(answer), redirect_stderr(refusal):
            try:
                getattr(import_module(module), name)()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        try:
            found = json.loads(answer.getvalue())
        except ValueError:
            return {"exit": code, "sentence": refusal.getvalue().strip()}
        return {"exit": code, **found} if code and isinstance(found, dict) else found


def _file(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")


def _masked(text: str, folder: str, roots: Sequence[str]) -> str:
    """The value without the paths of run files and inputs."""
    for each in (folder, *roots):
        text = text.replace(f"{each}/", "")
    return text


if __name__ == "__main__":
    main(*sys.argv[1:])
