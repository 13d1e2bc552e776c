"""Generate the lab's data sets, once, in the cache: TPC-H tables, tables and pages of the Big Data Benchmark, gzip
text.

All data is generated on this machine, always the same; nothing is downloaded.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb

from lab.errors import LabError
from lab.machine.host import cache_dir
from lab.runs.orders import PART_BYTES, write_orders

GENERATE_TIMEOUT_S = 1800
PARTS = 8
_SEED = 0.42
# A reader that skips from one row group to the next discards data in transit: at the default of 7 MiB, a query that
# reads a quarter of the columns transfers 1.8 times its bytes over a slow link.
_ROW_GROUP = "24MB"


def data_folder(kind: str, scale_factor: float) -> Path:
    """The folder of a data set in the lab's cache."""
    return cache_dir() / kind / f"sf{scale_factor:g}"


def make_data(kind: str, scale_factor: float, folder: Path | None = None) -> Path:
    """The folder of a data set, which is generated if it is missing.

    Scale factor 1 is about 350 MB of Parquet (``tpch``), 430 MB of CSV and pages (``bdb``), and 16 files of 64 MB
    of text each, compressed (``gzip-text``).
    """
    if not 0.001 <= scale_factor <= 1000:
        raise LabError(f"A scale factor of {scale_factor:g} is out of range; use 0.001 to 1000.")
    target = data_folder(kind, scale_factor) if folder is None else folder
    if target.is_dir():
        return target
    print(f"generating {kind} data of scale factor {scale_factor:g}, once …", file=sys.stderr)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    _MAKERS[kind](scale_factor, partial)
    partial.rename(target)
    return target


def _tpch(scale_factor: float, folder: Path) -> None:
    """TPC-H's tables by tpchgen-cli, one Parquet file a table (SF1: 8 s)."""
    compared = Path(sys.executable).with_name("tpchgen-cli")
    program = str(compared) if compared.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise LabError("The lab needs tpchgen-cli; install it with 'pip install tpchgen-cli'.")
    command = [
        program,
        "parquet",
        "-s",
        f"{scale_factor:g}",
        "--row-group-bytes",
        _ROW_GROUP,
        "--output-dir",
        str(folder),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GENERATE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"tpchgen-cli did not make scale factor {scale_factor:g} in {GENERATE_TIMEOUT_S} s.") from None
    if done.returncode != 0:
        reason = done.stderr.strip().split("\n")[0]
        raise LabError(f"tpchgen-cli failed ({reason}); the lab needs its version 4 or later.")


# One row in 200 of the benchmark's 5-node size, in its proportions: 8.6 visits a page.
_BDB_SQL = """
SELECT setseed({seed});
CREATE TABLE rankings AS
SELECT 'http://' || md5(i::VARCHAR)[:12] || '.example/' || md5((i * 7)::VARCHAR) AS pageURL,
       (10 * random() ** -0.7)::INTEGER AS pageRank, (1 + 99 * random())::INTEGER AS avgDuration
FROM range({pages}) t(i);
CREATE TABLE uservisits AS
SELECT (random() * 255)::INTEGER || '.' || (random() * 255)::INTEGER || '.' || (random() * 255)::INTEGER || '.'
           || (random() * 255)::INTEGER AS sourceIP,
       'http://' || md5(p::VARCHAR)[:12] || '.example/' || md5((p * 7)::VARCHAR) AS destURL,
       DATE '1970-01-01' + (random() * 15000)::INTEGER AS visitDate, random()::DECIMAL(9, 8) AS adRevenue,
       'Mozilla/5.0 (' || md5((p % 50)::VARCHAR) || ')' AS userAgent, 'C' || (random() * 99)::INTEGER AS countryCode,
       'C' || (p % 99) || '-L' || (p % 9) AS languageCode, md5((p % 10000)::VARCHAR)[:8] AS searchWord,
       (1 + random() * 10)::INTEGER AS duration
FROM (SELECT (random() * {pages} - 0.5)::INTEGER AS p FROM range({visits}) t(i));
"""


def _bdb(scale_factor: float, folder: Path) -> None:
    """The Big Data Benchmark's two tables as CSV and its crawled pages as text, in ``PARTS`` files each."""
    pages, visits = max(1000, round(300_000 * scale_factor)), max(8600, round(2_580_000 * scale_factor))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(_BDB_SQL.format(seed=_SEED, pages=pages, visits=visits))
        for table in ("rankings", "uservisits"):
            (folder / table).mkdir()
            for part in range(PARTS):
                file = folder / table / f"part-{part:05d}.csv"
                connection.execute(
                    f"COPY (SELECT * FROM {table} WHERE rowid % {PARTS} = {part}) TO '{file}' (HEADER false)"
                )
        found = connection.execute("SELECT pageURL FROM rankings ORDER BY rowid LIMIT 20000").fetchall()
    urls = [row[0] for row in found]
    rng = random.Random(42)
    words = _vocabulary(rng)
    (folder / "documents").mkdir()
    for part in range(PARTS):
        with (folder / "documents" / f"part-{part:05d}.txt").open("w") as text_file:
            for _ in range(max(100, round(20_000 * scale_factor))):
                text = rng.choices(words, k=80)
                text[::20] = [f'<a href="{urls[int(rng.random() ** 2 * len(urls))]}">' for _ in text[::20]]
                text_file.write(" ".join(text) + "\n")


def _vocabulary(rng: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(5000)]


def _gzip_text(scale_factor: float, folder: Path) -> None:
    """A dump of orders in ``orders.PARTS`` files, each compressed as one stream, so that each file is a task."""
    (folder / "text").mkdir()
    write_orders(folder / "text", max(1000, round(PART_BYTES * scale_factor)))


_MAKERS: dict[str, Callable[[float, Path], None]] = {"tpch": _tpch, "bdb": _bdb, "gzip-text": _gzip_text}
