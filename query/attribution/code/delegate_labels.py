"""Labels of the stacks of delegates, such as Python workers, by indexes.

Such stacks are attributed to stages, not to tasks, so they are in no table of the run.  Their functions are found by
the rule for samples of tasks (query/sql/attributed_frames.sql).
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from crystalperf.query.attribution.code.decide import NumberedStacks, add_frames, attributed_frames, prepare
from crystalperf.query.attribution.code.libraries import ProgramVersions, fitting
from crystalperf.query.attribution.code.resolve import load_indexes
from crystalperf.query.inputs.reader import DelegateStack, ReadableFramework, StackLabel


def label_stacks(
    framework: ReadableFramework,
    ran: ProgramVersions,
    names: Sequence[str],
    chosen: Sequence[str],
    stacks: Sequence[DelegateStack],
) -> list[StackLabel | None]:
    """The label of each stack, None for one without an indexed function.

    `names` are the run's resources, `chosen` the indexes that the user named; empty for those that fit.  Raises
    IndexFileError if a named index does not exist.
    """
    table = NumberedStacks(framework)
    numbers = table.add_stacks(stacks)
    if not len(numbers):
        return []
    fits = fitting(framework, ran, {file for file, _, _ in table.frames}, chosen)
    by_name = {each.found: each for each in fits}
    with duckdb.connect() as connection:
        add_frames(connection, table)
        loaded = load_indexes(connection, [each.found for each in fits if each.found is not None], "frames")
        if not loaded.known:
            return [None] * len(numbers)
        others = [name for name in loaded.known if not by_name[name].is_exact]
        libraries = [name for name in loaded.known if by_name[name].kind == "library"]
        prepare(connection, table, loaded, others, libraries, names)
        columns = ", ".join(f"coalesce({name}, 0)::DOUBLE" for name in names)
        rows = connection.execute(
            f"SELECT stack_id, index_name, symbol, {columns} FROM ({attributed_frames(names)}) WHERE symbol IS NOT NULL"
        ).fetchall()
    found = {
        stack: StackLabel(index_name, symbol, dict(zip(names, shares, strict=True)))
        for stack, index_name, symbol, *shares in rows
    }
    return [found.get(number) for number in np.asarray(numbers).tolist()]
