"""What the labels are worth: ``python -m lab.score.labels --profiles FOLDER``, two tables.

Each recorded base is profiled again with other labels of the functions that decide its stacks, and everything else as
it is: thread states, what Spark measured, the model.

    shipped     as the index has them
    shuffled    each function has the vector of another one of its index, drawn anew for each of SEEDS
    all cpu     every function computes
    list        no index: a stack with one of DEVICE_APIS in it is that device's, any other the CPU's
    both        the list, and where none of it is in a stack, the labels
    both, …     the same, but what neither is on the list nor waits computes, whatever its label

What comes out is compared with the kernel's truth (points by which shares of task time are off, mean over resources and
over stages by their task time) and with reruns (mean deviation of predictions).
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np

from crystalperf import query
from crystalperf.indexes import open_read_only, resources
from crystalperf.indexes.exports import locate
from crystalperf.query.predict.estimate import predict
from crystalperf.query.runfile import pipeline
from lab.runs.suites import find_suite
from lab.runs.sweep import read_rows
from lab.score.pairs import Measured, measured, recorder, suites_parser
from lab.score.predictors import Base, answer, by_labels, from_code, world_of
from lab.score.vectors import average, code_vectors, compare, load_samples, profiled, shares, split_vectors, truth_of

SEEDS = 3

DEVICE_APIS: tuple[tuple[str, str], ...] = (
    ("disk", r"java\.io\.(FileInputStream|FileOutputStream|RandomAccessFile|FileDescriptor|UnixFileSystem)\."),
    ("disk", r"java\.nio\.channels\.(FileChannel|AsynchronousFileChannel)\."),
    ("disk", r"java\.nio\.file\.(Files|spi\.FileSystemProvider)\."),
    ("disk", r"java\.nio\.MappedByteBuffer\.(load|force)"),
    (
        "disk",
        r"sun\.nio\.ch\.(FileChannelImpl|FileDispatcherImpl|UnixFileDispatcherImpl|SimpleAsynchronousFileChannel)",
    ),
    ("disk", r"sun\.nio\.fs\.Unix(NativeDispatcher|FileSystemProvider|CopyFile)\."),
    ("disk", r"java\.util\.zip\.ZipFile\.|java\.util\.jar\.JarFile\."),
    ("disk", r"org\.apache\.hadoop\.fs\.(RawLocalFileSystem|LocalFileSystem|RawLocalFileSystem\$\w+)\."),
    ("disk", r"org\.rocksdb\.RocksDB\.|org\.rocksdb\.RocksIterator\."),
    ("disk", r"org\.(iq80|fusesource)\.leveldb\w*\."),
    ("net", r"java\.net\.(Socket|SocketInputStream|SocketOutputStream|ServerSocket|InetAddress|URLConnection)\b"),
    ("net", r"java\.net\.(HttpURLConnection|DatagramSocket|PlainSocketImpl|SocksSocketImpl)\b"),
    ("net", r"sun\.net\.www\.http\.HttpClient\.|java\.net\.http\."),
    ("net", r"sun\.nio\.ch\.(SocketChannelImpl|SocketDispatcher|NioSocketImpl|Net|ServerSocketChannelImpl)\."),
    ("net", r"sun\.nio\.ch\.(EPoll|EPollSelectorImpl|SelectorImpl|DatagramChannelImpl|SocketAdaptor)\b"),
    ("net", r"io\.netty\.channel\.(epoll|kqueue|socket)\.|io\.netty\.channel\.nio\.NioEventLoop\."),
    ("net", r"io\.netty\.channel\.(AbstractChannelHandlerContext|DefaultChannelPipeline)\w*\.(write|flush|read)"),
    ("net", r"org\.apache\.hadoop\.ipc\.(Client|ProtobufRpcEngine\d?|Server)\b"),
    ("net", r"org\.apache\.hadoop\.hdfs\.(DFSInputStream|DFSOutputStream|DataStreamer|DFSClient|client\.impl\.\w+)\b"),
    ("net", r"org\.apache\.hadoop\.net\.Socket(Input|Output)Stream\b|org\.apache\.hadoop\.net\.SocketIOWithTimeout"),
    ("net", r"org\.apache\.hadoop\.fs\.(s3a|azurebfs|gcs)\."),
    ("net", r"com\.amazonaws\.|software\.amazon\.awssdk\.|com\.google\.cloud\.storage\."),
    ("net", r"org\.apache\.kafka\.common\.network\.|org\.apache\.kafka\.clients\.NetworkClient"),
    ("net", r"java\.sql\.\w+\.execute|org\.postgresql\.core\.|com\.mysql\.cj\.protocol\."),
    ("net", r"io\.grpc\.|okhttp3\.|org\.apache\.http\.impl\.|org\.apache\.http\.conn\."),
)
"""What moves bytes on the JVM, by the names of frames: some forty classes, as somebody would list them by heart."""

Relabel = Callable[[duckdb.DuckDBPyConnection], None]
NAMES = resources()


def as_shipped(connection: duckdb.DuckDBPyConnection) -> None:
    """Nothing changes."""


def all_cpu(connection: duckdb.DuckDBPyConnection) -> None:
    """Every deciding function computes."""
    others = ", ".join(f"{name} = 0" for name in NAMES if name != "cpu")
    connection.execute(f"UPDATE stacks SET cpu = 1, {others} WHERE symbol IS NOT NULL")


def by_list(*, labels: bool = False, waiting: bool = False) -> Relabel:
    """The device of the frame nearest the leaf that is on the list, else the CPU.

    With `labels` the label stays where nothing of the list is in a stack; with `waiting` that of those that wait.
    """

    def relabel(connection: duckdb.DuckDBPyConnection) -> None:
        known = [(device, re.compile(pattern)) for device, pattern in DEVICE_APIS]
        rows = connection.execute(
            "SELECT stack_id, frames, skipped LIKE '%wait%' FROM stacks WHERE symbol IS NOT NULL"
        ).fetchall()
        found: list[tuple[int, str | Sequence[float]]] = []
        for stack, frames, waits in rows:
            devices = (device for frame in frames for device, pattern in known if pattern.match(frame))
            device = next(devices, "")
            if device or not (labels or (waiting and waits)):
                found.append((stack, device or "cpu"))
        _set(connection, found)

    return relabel


def shuffled(seed: int) -> Relabel:
    """Each deciding function has the vector of another one of its index."""

    def relabel(connection: duckdb.DuckDBPyConnection) -> None:
        chance = random.Random(seed)
        rows = connection.execute(
            "SELECT index_name, symbol, list(stack_id) FROM stacks WHERE symbol IS NOT NULL GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        drawn = {name: vectors(name) for name in dict.fromkeys(row[0] for row in rows)}
        found: list[tuple[int, str | Sequence[float]]] = []
        for name, _, stacks in rows:
            vector = chance.choice(drawn[name])
            found += [(stack, vector) for stack in stacks]
        _set(connection, found)

    return relabel


def vectors(index_name: str) -> list[tuple[float, ...]]:
    """The vectors of all functions of an index, in their order."""
    with open_read_only(locate(index_name), "index") as connection:
        names = ", ".join(NAMES)
        return connection.execute(f"SELECT {names} FROM functions WHERE cpu IS NOT NULL ORDER BY ALL").fetchall()


def _set(connection: duckdb.DuckDBPyConnection, found: Sequence[tuple[int, str | Sequence[float]]]) -> None:
    stack = np.array([each for each, _ in found], dtype=np.int64)
    unit = dict(zip(NAMES, np.eye(len(NAMES)), strict=True))
    table = np.array([unit[what] if isinstance(what, str) else what for _, what in found]).reshape(-1, len(NAMES))
    columns = {"stack_id": stack, **{name: table[:, position] for position, name in enumerate(NAMES)}}
    new = {name: np.ascontiguousarray(values) for name, values in columns.items()}  # noqa: F841 (DuckDB reads it)
    values = ", ".join(f"{name} = new.{name}" for name in NAMES)
    connection.execute(f"UPDATE stacks SET {values} FROM new WHERE stacks.stack_id = new.stack_id")


LABELS: tuple[tuple[str, tuple[Relabel, ...]], ...] = (
    ("shipped", (as_shipped,)),
    ("shuffled", tuple(shuffled(seed) for seed in range(SEEDS))),
    ("all cpu", (all_cpu,)),
    ("list of device APIs", (by_list(),)),
    ("both", (by_list(labels=True),)),
    ("both, labels of what waits", (by_list(waiting=True),)),
)


@contextmanager
def relabelled(relabel: Relabel) -> Iterator[None]:
    """Profiles that are made meanwhile have other labels."""
    first, *rest = pipeline.STEPS

    def step(connection: duckdb.DuckDBPyConnection, _: pipeline.Assembly) -> None:
        relabel(connection)

    with mock.patch.object(pipeline, "STEPS", (first, ("relabelling", step), *rest)):
        yield


# Without thread states ------------------------------------------------------------------------------------------------


def collapse(run: Path, path: Path) -> None:
    """The samples of a run's wall clock as collapsed stacks, which tell neither state nor time."""
    with duckdb.connect(str(run), read_only=True) as connection:
        rows = connection.execute(
            "SELECT list_reverse(frames), round(sum(weight_ms))::BIGINT FROM samples JOIN stacks USING (stack_id)"
            " WHERE kind IN ('running', 'wall', 'waking') GROUP BY ALL HAVING round(sum(weight_ms)) > 0"
        ).fetchall()

    def told(frame: str) -> str:
        name, _, line = frame.partition(":")
        owner, _, method = name.rpartition(".")
        return method if ".so" in owner else f"{owner.replace('.', '/')}.{method}:{line}"

    lines = [f"{';'.join(told(frame) for frame in stack)} {count}" for stack, count in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# Scores ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arm:
    """What one set of labels gives from one recorder: points off the kernel's shares, and predictions off reruns.

    `vectors` are by cpu, disk and net, `off` shares by role.
    """

    vectors: list[np.ndarray[Any, Any]]
    off: dict[str, list[float]]


def score(known: Measured, out: Path, profiles: Path, relabel: Relabel, name: str) -> dict[tuple[str, str], Arm]:
    """By recorder and by what the vectors rest on."""
    arms: dict[tuple[str, str], Arm] = {}
    rows = {row["run"]: row for row in read_rows(out, known.suite) if row["role"] == "base"}
    for row in rows.values():
        if row["sampler"] == "none" or not (out / row["event_log"]).exists():
            continue
        truth = truth_of(out / row["run"], row, out)
        bases = known.bases[row["sweep"], recorder(row)]
        base = next(each for each in bases if row["run"].replace("/", "-") in str(each.run))
        folder = profiles / name
        with relabelled(relabel):
            run = profiled(row, out, folder)
        made = {"measured": Base(run, base.scope, base.wall_ms, base.configuration)}
        if row["sampler"] == "async":
            stacks = folder / f"{row['run'].replace('/', '-')}.collapsed"
            collapse(base.run, stacks)
            with relabelled(relabel):
                bare = query.profile(
                    [out / row["event_log"], stacks], output=stacks.with_suffix(".collapsed.duckdb")
                ).path
            made["collapsed"] = Base(bare, base.scope, base.wall_ms, base.configuration)
        for kind, one in made.items():
            who = f"{recorder(row)}{' without states' if kind == 'collapsed' else ''}"
            _add(arms, (who, "with Spark's measurements"), known, one, compare(split_vectors(one.run), truth), shipped)
            _add(arms, (who, "recording and labels"), known, one, compare(code_vectors(one.run), truth), from_code)
            if kind == "measured":
                _add(arms, (who, "labels alone (§4.1)"), known, one, compare(sampled(one.run), truth), printed)
    return arms


def shipped(base: Base, configuration: Any) -> float | None:
    """As the product answers."""
    return answer(base, configuration).predicted_ms


def printed(base: Base, configuration: Any) -> float | None:
    """The product's model with vectors as the paper prints them."""
    return predict(by_labels(base), world_of(base, configuration)).predicted_ms


def sampled(run: Path) -> dict[str, Any]:
    """The mean of the samples' vectors, whatever state a thread was in."""
    sums = ", ".join(f"sum(weight_ms * coalesce({name}, 0))" for name in NAMES)
    with duckdb.connect() as connection:
        load_samples(connection, run)
        connection.execute("CREATE TABLE units AS FROM run.units")
        return shares(
            connection,
            f"SELECT group_id, {sums}, coalesce(sum(weight_ms) FILTER (cpu IS NULL), 0) FROM samples"
            " JOIN stacks USING (stack_id) JOIN units USING (unit_id) WHERE weight_ms > 0 GROUP BY ALL",
        )


def _add(
    arms: dict[tuple[str, str], Arm],
    key: tuple[str, str],
    known: Measured,
    base: Base,
    found: Sequence[Any],
    ask: Callable[[Base, Any], float | None],
) -> None:
    arm = arms.setdefault(key, Arm([], {}))
    arm.vectors.append(average(found, [np.abs(each.error) for each in found])[: len(NAMES)])
    for one in known.scored:
        if one.sweep == base.configuration.sweep:
            predicted = ask(base, one)
            if predicted is not None:
                arm.off.setdefault(one.role, []).append(abs(predicted / known.actual_ms[one.number] - 1))


def main() -> None:
    """Print a row for each suite, recorder and kind of vector, a column for each set of labels."""
    given = suites_parser(__doc__).parse_args()
    found: dict[tuple[str, str, str], dict[str, list[Arm]]] = {}
    for suite in given.suites:
        known = measured(find_suite(suite), given.out, given.profiles)
        for name, ways in LABELS:
            for number, relabel in enumerate(ways):
                folder = re.sub(r"\W+", "-", f"{name}-{number}")
                for (who, rest), arm in score(known, given.out, given.profiles, relabel, folder).items():
                    found.setdefault((suite, who, rest), {}).setdefault(name, []).append(arm)
    for title, cell in ((f"points off, {' / '.join(NAMES)}", _points), ("off reruns %, even / odd", _off)):
        heads = ["suite", "recorder", "vectors from", *(name for name, _ in LABELS)]
        print(f"\n{title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for key, arms in found.items():
            print(f"| {' | '.join((*key, *(cell(arms[name]) for name, _ in LABELS)))} |")


def _points(arms: Sequence[Arm]) -> str:
    mean = np.mean([each for arm in arms for each in arm.vectors], axis=0)
    return " / ".join(f"{100 * each:.1f}" for each in mean)


def _off(arms: Sequence[Arm]) -> str:
    cells = []
    for role in ("even", "odd"):
        off = [each for arm in arms for each in arm.off.get(role, ())]
        cells.append(f"{100 * statistics.mean(off):.1f}" if off else "")
    return " / ".join(cells)


if __name__ == "__main__":
    main()
