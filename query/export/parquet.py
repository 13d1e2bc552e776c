"""The tables of a run file as Parquet, a file each, written by DuckDB."""

from __future__ import annotations

from pathlib import Path

from crystalperf.indexes import guard, store


def write_tables(run_file: Path, folder: Path) -> None:
    """Write each table of a run file to `folder`/TABLE.parquet; the folder must exist.

    The run file may come from a stranger: it is checked first, and DuckDB may write to this folder only.
    """
    store.checked(run_file, "run")
    with guard.connect() as connection, guard.damage_as_error(run_file, "run"):
        guard.attach_unread(connection, run_file, "exported")
        connection.execute(f"SET allowed_directories = [{guard.quoted(str(folder.absolute()) + '/')}]")
        connection.execute("SET temp_directory = ''")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        tables = guard.check_nothing_runs(connection, run_file, "exported")
        for name in sorted(tables):
            place = guard.quoted(str(folder.absolute() / f"{name}.parquet"))
            connection.execute(f'COPY exported."{name}" TO {place} (FORMAT parquet, COMPRESSION zstd)')
