"""`crystalperf review DIFF --run RUN`: device calls that a change introduces in functions on a run's hot path."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crystalperf.cli.output import print_message, progress, write, write_json
from crystalperf.cli.runs import STDIN, find_run
from crystalperf.cli.text import counted
from crystalperf.indexes import resources
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.lookup.hot import Heat, HotPath, hot_path
from crystalperf.query.lookup.introduced_calls import (
    IntroducedCall,
    Known,
    Labelled,
    NewCall,
    introduced_calls,
    made_on,
)
from crystalperf.query.lookup.patch import MAX_BYTES, ChangedFile, changed_files

if TYPE_CHECKING:
    from crystalperf.indexer.records import ParsedFile
    from crystalperf.query.run import Run

MAX_HOPS = 3
"""Maximum number of calls from a hot function to a new one, through other new functions."""

_LABELLED = """
    SELECT qualified_name, split_part(qualified_name, '.', -1) AS simple, coalesce(split_part(class_name, '.', -1), ''),
        [{shares}], confidence
    FROM labelled
    WHERE split_part(qualified_name, '.', -1) IN ({names})
        OR (ends_with(qualified_name, '.<init>') AND split_part(class_name, '.', -1) IN ({names}))
"""


def review(change: str, run_text: str, source: str, *, as_json: bool) -> int:
    """Print the introduced device calls, those in the hottest functions first."""
    try:
        from crystalperf.indexer.parse import parse_file
        from crystalperf.indexer.records import SUFFIXES
    except ImportError as error:
        raise SettingError(
            f"reviewing a change parses source code, which needs the extra `indexer` ({error.name} is missing):"
            " `pip install '.[indexer]'` in a checkout of CrystalPerf"
        ) from error
    files = changed_files(_text(change))
    run = find_run(run_text)
    with progress() as step:
        step("following the critical path")
        path = hot_path(run)
        calls: list[NewCall] = []
        parsed: list[ParsedFile] = []
        missing: list[str] = []
        texts: dict[str, str] = {}
        for file in files:
            language = SUFFIXES.get(Path(file.path).suffix)
            if language is None:
                continue
            step(f"reading {file.path}")
            text = _source(Path(source), file)
            if text is None:
                missing.append(file.path)
                continue
            texts[file.path] = text
            parsed.append(parse_file(text.encode(), language, file.path))
            calls += _new_calls(parsed[-1], file, text)
        step("searching the indexes")
        found = introduced_calls(calls, Known(_functions(run, calls)), _heat(path, parsed, texts))
    where = "use --source to name a checkout that contains the change"
    if missing and not parsed:
        raise InputError(f"{change}: no file below {source} matches the change; {where}")
    if missing:
        others = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        print_message(
            f"{', '.join(missing[:3])}{others}: skipped, because the content below {source} does not match the change;"
            f" {where}"
        )
    if as_json:
        entries = [_plain(each) for each in found]
        write_json(
            {"run": run_text, "files": len(parsed), "calls": len(calls), "entering": entries, "missing": missing}
        )
    else:
        write(_shown(found, len(parsed), len(calls), path, run.header().vocabulary.task))
    return 0


def _text(change: str) -> str:
    try:
        if change == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(change, "rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{change}: cannot be read ({error.strerror or error})") from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{change}: larger than {MAX_BYTES >> 20} MiB, the limit for a diff; split the change")
    return content.decode("utf-8", "replace")


def _source(root: Path, file: ChangedFile) -> str | None:
    """The file after the change; None if it is missing, or does not match the change."""
    try:
        place = (root / file.path).resolve()
    except ValueError as error:  # the name has a NUL
        raise InputError(f"{file.path}: not a valid file name") from error
    if not place.is_relative_to(root.resolve()):
        raise InputError(f"{file.path}: the diff names a file outside of {root}; use --source to name its checkout")
    try:
        text = place.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = text.split("\n")
    same = all(
        number <= len(lines) and lines[number - 1].rstrip("\r") == line.rstrip("\r")
        for number, line in file.added.items()
    )
    return text if same else None


def _new_calls(parsed: ParsedFile, file: ChangedFile, text: str) -> Iterator[NewCall]:
    """Calls that occur on more added lines than removed lines, once per function and name."""
    gone = "\n".join(file.removed)
    seen: set[tuple[str, str]] = set()
    declared = {(each.first_line, each.name) for each in parsed.functions}
    for call in parsed.calls:
        function = parsed.functions[call.caller]
        simple = re.escape(call.name)
        pattern = re.compile(rf"(?<![\w$]){simple}\s*(?:\[[^\]\n]*\]\s*)?[({{]|\.{simple}(?![\w$(])")
        inside = range(function.first_line, function.last_line + 1)
        lines = [
            number
            for number, line in file.added.items()
            if number in inside and (number, call.name) not in declared and pattern.search(line)
        ]
        key = (_outer(function.qualified_name), call.name)
        if not lines or key in seen:
            continue
        if sum(len(pattern.findall(line)) for line in file.added.values()) <= len(pattern.findall(gone)):
            continue
        seen.add(key)
        yield NewCall(
            file=file.path,
            line=min(lines),
            text=file.added[min(lines)].strip(),
            function=key[0],
            name=call.name,
            made_on=made_on(call.receiver, call.name, text),
        )


def _outer(name: str) -> str:
    """The function that encloses a lambda."""
    return name.partition(".<lambda>")[0]


def _functions(run: Run, calls: Sequence[NewCall]) -> Iterator[Labelled]:
    """The functions in the run's indexes whose name is that of one of the calls."""
    names = sorted({call.name for call in calls})
    if not names:
        return
    listed = ", ".join("'" + each.replace("'", "''") + "'" for each in names)
    for qualified, simple, type_name, shares, confidence in run.sql(
        _LABELLED.format(shares=", ".join(resources()), names=listed)
    ).rows:
        yield Labelled(qualified, simple, type_name, tuple(shares), confidence)


def _heat(path: HotPath, parsed: Sequence[ParsedFile], texts: Mapping[str, str]) -> dict[str, tuple[Heat, str | None]]:
    """The sampled time of each function of the changed files; a function without samples gets its hottest caller's.

    Only unambiguous calls count: within the class of the function, or on its class.
    """
    found: dict[str, tuple[Heat, str | None]] = {}
    functions = {_outer(each.qualified_name): each for file in parsed for each in file.functions}
    for name in functions:
        heat = path.heat(name)
        if heat is not None:
            found[name] = (heat, None)
    not_recorded = {name.rpartition(".")[2] for name in functions.keys() - found.keys()}
    types: dict[tuple[str, str], str] = {}  # search the text of a file once for each receiver
    callers: dict[tuple[str, str], set[str]] = {}  # by class and name of the callee
    for file in parsed:
        for call in file.calls:
            if call.name not in not_recorded:
                continue
            caller = file.functions[call.caller]
            is_own_call = call.receiver in ("", "this", "self")
            key = (file.file, call.receiver)
            if not is_own_call and key not in types:
                types[key] = made_on(call.receiver, call.name, texts[file.file])
            type_name = _last(caller.class_name) if is_own_call else types[key]
            callers.setdefault((type_name, call.name), set()).add(_outer(caller.qualified_name))
    for _ in range(MAX_HOPS):
        reached: dict[str, tuple[Heat, str | None]] = {}
        for name in functions.keys() - found.keys():
            key = (_last(functions[name].class_name), name.rpartition(".")[2])
            hot = [(found[each], each) for each in callers.get(key, ()) if each in found]
            if hot:
                (heat, through), caller_name = max(hot, key=lambda each: each[0][0].time_ms)
                reached[name] = (heat, through or caller_name)
        found |= reached
    return found


def _last(class_name: str | None) -> str:
    return (class_name or "").rpartition(".")[2]


def _plain(found: IntroducedCall) -> dict[str, Any]:
    plain = asdict(found)
    heat = plain.pop("heat")
    return {
        **plain.pop("call"),
        **plain,
        "share": round(found.share, 4),
        "confidence": round(found.confidence, 4),
        "hot_ms": None if heat is None else round(heat["time_ms"], 3),
        "hot_share": None if heat is None else round(heat["share"], 4),
        "stages": () if heat is None else heat["stages"],
    }


def _shown(found: Sequence[IntroducedCall], files: int, calls: int, path: HotPath, unit: str) -> str:
    from crystalperf.cli.text import printable

    hot = [each for each in found if each.heat is not None]
    cold = len(found) - len(hot)
    lines = [
        f"The change adds {counted(len(hot), 'device call')} to the run's hot path"
        f" ({counted(calls, 'new call')} in {counted(files, 'file')};"
        f" {path.sampled_ms / 1000:.1f} s of samples on the critical path)."
    ]
    for each in hot:
        assert each.heat is not None
        lines += [
            "",
            f"{each.call.file}:{each.call.line}  {each.resource}",
            f"  call     {each.call.text}",
            f"           {each.call.name} is {each.functions[0]}"
            f"{f' or {each.total - 1} more' if each.total > 1 else ''}"
            f" ({each.resource} {100 * each.share:.0f} %, confidence {100 * each.confidence:.0f} %; {each.how})",
            f"  samples  {_heat_words(each, each.heat, unit)}",
        ]
    if cold:
        lines += ["", f"{counted(cold, 'device call')} in functions without samples; --json has all."]
    lines += ["", "Modelled, from the functions' labels and this run's samples. The changed code did not run."]
    return "\n".join(printable(each) for each in lines) + "\n"


def _heat_words(found: IntroducedCall, heat: Heat, unit: str) -> str:
    took = (
        f"{heat.time_ms / 1000:.1f} s of {unit} time ({100 * heat.share:.0f} %), most in {', '.join(heat.stages[:2])}"
    )
    if found.through is None:
        return f"{found.call.function}: {took}"
    return f"{found.call.function} has no samples; its caller {found.through}: {took}"
