"""Declarations of the commands: arguments, options and help.  Each command calls the module that implements it.

Only the standard library and typer are imported here, so that `--help` and shell completion are quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from crystalperf.cli.fleet_commands import app as fleet_app
from crystalperf.cli.index_app import app as index_app
from crystalperf.cli.options import (
    SETTINGS,
    App,
    AsJson,
    Force,
    Full,
    Html,
    Indexes,
    NoLedger,
    OtherRuns,
    Output,
    Paths,
    PathsOrRun,
    Redact,
    RunName,
    Scope,
    Traceback,
    complete_format,
    complete_framework,
    complete_place,
    complete_run,
    setting,
    show_help,
)
from crystalperf.cli.serving import serve

app = typer.Typer(name="crystalperf", rich_markup_mode=None, context_settings=SETTINGS, pretty_exceptions_enable=False)
app.add_typer(fleet_app, name="fleet", short_help="summarize many runs: waste, possible savings, slower jobs")
app.add_typer(index_app, name="index", short_help="build, list, inspect and compare resource indexes")


@app.callback(invoke_without_command=True)
def crystalperf(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the versions of the tool and its schema")] = False,
    traceback: Traceback = False,
) -> None:
    """analyze where a dataflow job's time went, and predict its runtime with other resources

    \b
    Example:
      crystalperf analyze app-1.log recordings/*.jfr
    """
    if version:
        from crystalperf.cli.output import write
        from crystalperf.cli.version import version_line

        write(version_line() + "\n")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        show_help(context)


@app.command()
def analyze(
    paths: PathsOrRun,
    output: Output = "",
    force: Force = False,
    app_id: App = "",
    index: Indexes = [],  # noqa: B006 - typer reads the default and makes a new list of it
    full: Full = False,
    html: Html = "",
    no_ledger: NoLedger = False,
    as_json: AsJson = False,
) -> int:
    """find a job's bottleneck, where its time went and what would help

    \b
    Example:
      crystalperf analyze app-1.log recordings/*.jfr
    """
    from crystalperf.cli.run_commands import analyze as answer

    return answer(paths, output, app_id, index, force=force, full=full, html=html, keeps=not no_ledger, as_json=as_json)


@app.command()
def runs(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="a part of a run's name", show_default=False, autocompletion=complete_run),
    ] = [],  # noqa: B006
    remove: Annotated[bool, typer.Option("--rm", help="remove the runs with these names from the cache")] = False,
    every: Annotated[bool, typer.Option("--all", help="list all, not only the newest 30")] = False,
    as_json: AsJson = False,
) -> int:
    """list the runs in the cache, the newest first, or remove some

    Each command takes their names, and `last` for the newest.

    \b
    Example:
      crystalperf runs q9
      crystalperf debug last
      crystalperf runs --rm app-20261121113629-0000
    """
    from crystalperf.cli.runs_command import runs as answer

    return answer(names, remove=remove, every=every, as_json=as_json)


@app.command()
def demo(as_json: AsJson = False) -> int:
    """analyze the recorded run that ships with CrystalPerf

    \b
    Example:
      crystalperf demo
    """
    from crystalperf.cli.demo import demo as answer

    return answer(as_json=as_json)


@app.command()
def profile(
    paths: Paths,
    output: Output = "",
    force: Force = False,
    app_id: App = "",
    index: Indexes = [],  # noqa: B006
    no_ledger: NoLedger = False,
    as_json: AsJson = False,
) -> int:
    """read logs and recordings and save them as one run file

    \b
    Example:
      crystalperf profile app-1.log recordings/*.jfr -o q9.duckdb
    """
    from crystalperf.cli.run_commands import profile as answer

    return answer(paths, output, app_id, index, force=force, keeps=not no_ledger, as_json=as_json)


@app.command()
def debug(run: RunName, scope: Scope = "all", as_json: AsJson = False) -> int:
    """show the critical path, its resources and the bottleneck

    \b
    Example:
      crystalperf debug q9.duckdb --scope job:3
    """
    from crystalperf.cli.run_commands import debug as answer

    return answer(run, scope, as_json=as_json)


@app.command()
def predict(
    run: RunName,
    settings: Annotated[
        list[str],
        setting(
            "--set",
            "what to change. Resources: workers, cores, cpu_speed, memory, disk, network (or your framework's words),"
            " device.gpu, device.arithmetic, device.gpumem, device.link. Work: input (batch), tasks"
            " (partitions, parallelism), tasks.STAGE, operator.NAME, skew=none, scheduler=fifo, fair or longest, rate"
            " and trigger (streams), loader_workers and launch (PyTorch). The value is absolute (8, 8GiB, 500MB/s,"
            " 10Gbps, 30s) or relative to the run (2x); a list (cores=2,4,8) prints a table."
            " docs/reference/settings.md explains each",
        ),
    ] = [],  # noqa: B006
    recorded: Annotated[list[str], setting("--recorded", "what the run had, if its log does not record it")] = [],  # noqa: B006
    more: Annotated[
        list[str],
        typer.Argument(metavar="[KEY=VALUE]...", help="more to change, as with --set", show_default=False),
    ] = [],  # noqa: B006
    scope: Scope = "all",
    replan: Annotated[
        bool,
        typer.Option(
            "--replan/--no-replan",
            help="repartition the work for the new number of slots, as the framework would, or keep the recorded tasks",
        ),
    ] = True,
    predictor: Annotated[
        str,
        typer.Option(
            "--predictor",
            metavar="NAME",
            help="another model than CrystalPerf's: paper, ernest, sparklens, amdahl, linear, monotasks, ds2,"
            " autoscaler, paleo, or one of another package; all: all of them side by side",
        ),
    ] = "",
    reruns: OtherRuns = [],  # noqa: B006
    machines: Annotated[
        str,
        typer.Option(
            "--prices",
            metavar="FILE",
            help="a CSV table of machines (name, price_per_hour, cores, memory, network, disk, cpu_speed): predict the"
            " runtime and the cost on each; --set workers=2,4,8 sets how many machines",
        ),
    ] = "",
    ran_on: Annotated[
        str,
        typer.Option(
            "--on", metavar="NAME", help="with --prices: the machine type of the recorded run, by its name in the table"
        ),
    ] = "",
    deadline: Annotated[
        str,
        typer.Option("--deadline", metavar="TIME", help="with --prices: the longest acceptable runtime, such as 10m"),
    ] = "",
    no_ledger: NoLedger = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print one row for each scenario as CSV")] = False,
    as_json: AsJson = False,
) -> int:
    """predict the runtime with other resources

    \b
    Example:
      crystalperf predict q9.duckdb --set cores=2,4,8 --set network=10Gbps --recorded network=1Gbps
      crystalperf predict q9.duckdb --set cores=8 network=2x
      crystalperf predict q9.duckdb --set cores=8 --with q9-small.duckdb
      crystalperf predict q9.duckdb --prices machines.csv --on small --deadline 10m
    """
    settings = [*settings, *more]
    if machines or ran_on or deadline:
        if (scope, replan, predictor) != ("all", True, ""):
            message = (
                "leave out --scope, --no-replan and --predictor: prices cover the whole run and use the built-in model"
            )
            raise typer.BadParameter(message, param_hint="'--prices'")
        if as_csv:
            raise typer.BadParameter("leave it out: --json has the table of machines", param_hint="'--csv'")
        from crystalperf.cli.advice import priced

        return priced(run, machines, ran_on, deadline, settings, recorded, reruns, as_json=as_json)
    if not settings:
        raise typer.BadParameter("name what to change, for example cores=2x", param_hint="'--set'")
    from crystalperf.cli.run_commands import predict as answer

    return answer(
        run,
        settings,
        recorded,
        scope,
        replan=replan,
        predictor=predictor,
        reruns=reruns,
        keeps=not no_ledger,
        as_csv=as_csv,
        as_json=as_json,
    )


@app.command()
def gate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="runs of the job to check: logs, run files or names of runs in the cache; values are their medians",
            show_default=False,
            autocompletion=complete_run,
        ),
    ],
    baseline: Annotated[
        list[str],
        typer.Option(
            "--baseline",
            metavar="RUN...",
            help="runs of the job to compare with, all up to the next option; five on each side see a slowdown of 30 %",
            show_default=False,
            autocompletion=complete_run,
        ),
    ] = [],  # noqa: B006
    limits: Annotated[
        list[str],
        typer.Option(
            "--max",
            metavar="METRIC=VALUE",
            help="a budget: runtime=10m, spill=1GB, gc=10%, failures=0, step=250ms, latency=2s, or of a prediction"
            " predicted[cores=0.5x]=20m; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    slowdown: Annotated[
        str,
        typer.Option(
            "--max-slowdown",
            metavar="SHARE",
            help="how much longer than the baseline the job may take; 10% by default",
            show_default=False,
        ),
    ] = "",
    config: Annotated[
        str,
        typer.Option(
            "--config",
            metavar="FILE",
            help="a TOML file with budgets in [gate]; crystalperf.toml of this folder by default",
            show_default=False,
        ),
    ] = "",
    formats: Annotated[
        list[str],
        typer.Option(
            "--format",
            metavar="FORMAT[=FILE]",
            help="also write the outcome as markdown, junit, github or gitlab: to a file, or instead of the text to"
            " standard output; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """check budgets of a job in CI

    \b
    Exit code: 0 within all budgets, 3 over one, 4 undecided (a range is on both
    sides of a budget, or a value is unknown), 1 an error.

    \b
    Example:
      crystalperf gate app-1.log --max runtime=10m --max spill=1GB
      crystalperf gate new/*.log --baseline old/*.log --max-slowdown 10%
    """
    from crystalperf.cli.gate_command import gate as answer

    return answer(names, baseline, limits, slowdown, config, formats, as_json=as_json)


@app.command()
def advise(
    run: RunName,
    settings: Annotated[
        list[str],
        setting("--set", "a scenario that matters to you, such as cores=2x; by default the usual scenarios"),
    ] = [],  # noqa: B006
    reruns: OtherRuns = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """recommend the next run to record for more precise predictions

    \b
    Example:
      crystalperf advise q9.duckdb --set workers=4x
    """
    from crystalperf.cli.advice import advise as answer

    return answer(run, settings, reruns, as_json=as_json)


@app.command()
def tune(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="a run, or several of one job: run files, names of runs in the cache, or logs; of several, the one"
            " that gains least decides",
            show_default=False,
            autocompletion=complete_run,
        ),
    ],
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            metavar="time|cost",
            help="time: the shortest runtime within the limits; cost: the fewest slot-hours (with --prices, the lowest"
            " price) in no longer than the recorded runtime or the deadline",
        ),
    ] = "time",
    limits: Annotated[
        list[str],
        typer.Option(
            "--limits",
            metavar="KEY=VALUE,...",
            help="the most to ask for: cores and memory of all workers together, and workers (or your framework's"
            " words), as in cores=32,memory=64g; by default what the runs had",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="with --goal cost: the longest runtime, such as 10m")
    ] = "",
    machines: Annotated[
        str, typer.Option("--prices", metavar="FILE", help="choose the machines, too: the table of `predict --prices`")
    ] = "",
    ran_on: Annotated[
        str,
        typer.Option(
            "--on", metavar="NAME", help="with --prices: the machine type of the recorded run, by its name in the table"
        ),
    ] = "",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="write the lines, each with its reason, as a configuration file"
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="with -o: replace an existing file")] = False,
    as_json: AsJson = False,
) -> int:
    """search for the best configuration of a job: all settings that predictions cover

    \b
    Example:
      crystalperf tune app-1.log --limits cores=32,memory=64g -o tuned.conf
      crystalperf tune monday.log tuesday.log --goal cost --deadline 10m
    """
    from crystalperf.cli.tuning import tune as answer

    return answer(runs, goal, limits, deadline, machines, ran_on, output, force=force, as_json=as_json)


@app.command()
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER",
            help="a run before a change and one after it: run files, names of runs in the cache, logs, or folders with"
            " a log and its recordings; with --to, all are runs before",
            show_default=False,
            autocompletion=complete_run,
        ),
    ],
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="AFTER",
            help="a run after the change, if a side has several runs, which are pooled; may be repeated",
            show_default=False,
            autocompletion=complete_run,
        ),
    ] = [],  # noqa: B006
    scope: Scope = "all",
    full: Full = False,
    html: Annotated[
        str, typer.Option("--html", metavar="FILE", help="also write an HTML page: one file that opens offline")
    ] = "",
    redact: Redact = False,
    force: Annotated[bool, typer.Option("--force", help="replace the page of other runs, or a redacted page")] = False,
    no_ledger: NoLedger = False,
    as_json: AsJson = False,
) -> int:
    """show whether a job got slower, and which causes the difference has

    \b
    Example:
      crystalperf compare monday.log tuesday.log
      crystalperf compare monday-1 monday-2 --to tuesday-1 --to tuesday-2
      crystalperf compare monday.log tuesday.log --html slower.html --redact
    """
    if not to and len(runs) != 2:
        message = "give two runs; if a side has several, name each run after the change with --to"
        raise typer.BadParameter(message, param_hint="'BEFORE AFTER'")
    from crystalperf.cli.comparing import compare as answer

    before, after = (runs, to) if to else (runs[:1], runs[1:])
    if redact and not html:
        raise typer.BadParameter("it applies to the page; name its file with --html", param_hint="'--redact'")
    return answer(
        before,
        after,
        scope,
        full=full,
        html=html,
        redact=redact,
        force=force,
        keeps=not no_ledger,
        as_json=as_json,
    )


@app.command()
def ledger(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN[,KEY=VALUE]]...",
            help="further runs to compare with, with settings that their logs do not record (network=10Gbps)",
            show_default=False,
            autocompletion=complete_run,
        ),
    ] = [],  # noqa: B006
    job: Annotated[
        str, typer.Option("--job", metavar="NAME", help="only jobs with this in their names", show_default=False)
    ] = "",
    fleet: Annotated[
        str,
        typer.Option("--fleet", metavar="DIR", help="also compare with the runs of this fleet", show_default=False),
    ] = "",
    backtest: Annotated[
        bool, typer.Option("--backtest", help="also count runs that began before the prediction was made")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--rm", help="remove the ledger, or with --job the entries of these jobs")
    ] = False,
    full: Full = False,
    as_json: AsJson = False,
) -> int:
    """compare predictions with the runs that came later

    \b
    analyze and predict keep their predictions and recommendations, and with
    profile and compare the facts of each run. A later run of the same job and
    plan, with the predicted resources, shows how far off a prediction was.
    CRYSTALPERF_LEDGER=off, or --no-ledger, keeps nothing.

    \b
    Example:
      crystalperf ledger
      crystalperf ledger tuesday.log,network=10Gbps --job q9
      crystalperf ledger --rm --job q9
    """
    if remove and (runs or fleet):
        raise typer.BadParameter("leave out the runs; --job names the entries to remove", param_hint="'--rm'")
    from crystalperf.cli.ledger_command import ledger as answer

    return answer(runs, job, fleet, backtest=backtest, remove=remove, full=full, as_json=as_json)


@app.command()
def report(
    run: RunName,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="the file to write; RUN.html by default")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="replace the page of another run, or a redacted page")] = False,
    redact: Redact = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="predict all scenarios of the page, even if that takes minutes for a large run"),
    ] = False,
) -> int:
    """write an HTML page about a run: one file that opens offline

    \b
    Example:
      crystalperf report app-20261121113629-0000 -o q9.html
    """
    from crystalperf.cli.page_command import report as answer

    return answer(run, output, force=force, redact=redact, full=full)


@app.command()
def export(
    run: RunName,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="speedscope, collapsed, pprof (stacks), perfetto (tasks over time), otlp (spans) or parquet (tables)",
            show_default=False,
            autocompletion=complete_format,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="the file to write, a folder for parquet; RUN and the format's suffix by default; - for stdout",
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="replace an existing file")] = False,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="hide names of the application, hosts, users, paths and tables, and values in statements"
        ),
    ] = False,
) -> int:
    """write a run for another tool, with the resource of each stack or task

    \b
    Example:
      crystalperf export q9.duckdb --to speedscope
      crystalperf export q9.duckdb --to collapsed -o - | head -3
    """
    from crystalperf.cli.export_command import export as answer

    return answer(run, to, output, force=force, redact=redact)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="one SELECT", show_default=False)],
    run: Annotated[
        str,
        typer.Option("--run", metavar="RUN", help="the run to query", show_default=False, autocompletion=complete_run),
    ] = "",
    index: Indexes = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of objects, all rows")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV with a header, all rows")] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="with --csv, for spreadsheets: put ' before texts that begin with = + - @ tab or carriage return",
        ),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="ROWS", help="most rows to print, 0 for all")] = 40,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, metavar="SECONDS", help="stop after that time, 0 for no limit")
    ] = 600.0,
) -> int:
    """query a run file and indexes in SQL, read-only

    \b
    Tables of a run: SHOW TABLES. Tables of indexes, with index_name: functions
    classes runtime_names calls build_warnings. DESCRIBE TABLE shows columns.

    \b
    Example:
      crystalperf sql --index jdk-17 "SELECT qualified_name, net FROM functions ORDER BY net DESC LIMIT 20"
    """
    from crystalperf.cli.sql_command import run_statement

    return run_statement(
        statement,
        run,
        index,
        as_json=as_json,
        as_csv=as_csv,
        escape_formulas=escape_formulas,
        limit=limit,
        timeout_s=timeout,
    )


@app.command()
def setup(
    framework: Annotated[
        str,
        typer.Argument(
            metavar="[FRAMEWORK]",
            help="the framework that runs the job; by default the first that supports --on",
            show_default=False,
            autocompletion=complete_framework,
        ),
    ] = "",
    place: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="PLACE",
            help="where the job runs, such as yarn, kubernetes or a vendor's service; the output lists all",
            show_default=False,
            autocompletion=complete_place,
        ),
    ] = "",
    version: Annotated[
        str,
        typer.Option(
            "--version", metavar="VERSION", help="the framework's version; all by default", show_default=False
        ),
    ] = "",
    folder: Annotated[
        str, typer.Option("--folder", metavar="DIR", help="the folder for recordings; must exist on every node")
    ] = "/tmp",
    as_json: AsJson = False,
) -> int:
    """print the settings that make a job write a log and samples

    \b
    Example:
      crystalperf setup --on yarn --folder /mnt/recordings >> job.conf
    """
    from crystalperf.cli.setup import setup as answer

    return answer(framework, folder, place, version, as_json=as_json)


@app.command()
def collect(
    framework: Annotated[
        str,
        typer.Argument(
            metavar="FRAMEWORK",
            help="the framework that runs the job",
            show_default=False,
            autocompletion=complete_framework,
        ),
    ],
    address: Annotated[
        str, typer.Argument(metavar="URL", help="the address of the cluster, http://HOST:8081", show_default=False)
    ],
    job: Annotated[str, typer.Option("--job", metavar="ID", help="the job, if several run")] = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="the folder for the log")] = ".",
) -> int:
    """wait for a job to end and save its cluster's data as a log

    \b
    If you interrupt it (Ctrl-C), it saves the data it has so far. It contacts
    this address only.

    \b
    Example:
      crystalperf collect flink http://localhost:8081 -o ./job
    """
    from crystalperf.cli.collect import collect as answer

    return answer(framework, address, job, output)


@app.command()
def review(
    change: Annotated[
        str, typer.Argument(metavar="DIFF", help="a change, as git diff writes it; - for stdin", show_default=False)
    ],
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="RUN",
            help="run with samples, made before the change",
            autocompletion=complete_run,
            show_default=False,
        ),
    ],
    source: Annotated[str, typer.Option("--source", metavar="DIR", help="the checkout that contains the change")] = ".",
    as_json: AsJson = False,
) -> int:
    """list disk and network calls that a change adds to hot code

    It parses source code, which needs the extra [indexer].

    \b
    Example:
      crystalperf review examples/review/change.diff --run q9.duckdb --source examples/review
    """
    from crystalperf.cli.review_command import review as answer

    return answer(change, run, source, as_json=as_json)


@app.command()
def mcp() -> int:
    """serve an agent over standard input and output (MCP)

    \b
    MCP is the Model Context Protocol. The tools: analyze, debug, predict, sql,
    functions, why. They read files with your permissions, and write only run
    files to the cache. In the configuration of your agent:
    {"command": "crystalperf", "args": ["mcp"]}

    \b
    Example:
      crystalperf mcp < /dev/null
    """
    from crystalperf.cli.agent_server import serve

    return serve()


@app.command()
def prime() -> int:
    """print the usage for an agent, on one screen

    \b
    Example:
      crystalperf prime
    """
    from crystalperf.cli.agent_prime import prime as answer

    return answer()


app.command()(serve)
