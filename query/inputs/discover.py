"""Finds the logs in a user's files and folders, grouped by application, and the recordings of stack samples.

Every file is recognised by its content, never by its name: recordings here, logs by the frameworks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from crystalperf.indexes import store
from crystalperf.indexes.errors import CrystalPerfError, InputError, Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.containers import (
    MAX_MEMBERS,
    ZIP_MAGIC,
    LogFile,
    Part,
    archive,
    as_input_error,
    filesystem,
    head,
    is_tar,
    is_url,
    local,
    members,
    opened,
)
from crystalperf.query.inputs.files import (
    HEAD_BYTES,
    SAMPLE_KINDS,
    Application,
    Head,
    Inputs,
    LogPart,
    SampleFile,
    SampleKind,
)
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.inputs.registry import Recogniser, is_built_in, readable, recognisers
from crystalperf.query.trace.plugins import broken
from crystalperf.query.trace.records import Problem, Problems, as_text, shortened
from crystalperf.query.trace.vocabulary import either

Kind = SampleKind | Literal["log", "zip", "tar", "empty", "unknown"]

_MAX_FILES = MAX_MEMBERS
_COLLAPSED_LINE = regex(r".+\S \d+(\.\d+)?\r?")
_COMMENT = "#"
"""Start of the lines with which Austin and others describe a recording, before its stacks."""

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, Zstandard


class UnusableFileError(InputError):
    """A file that the user named exists, but is neither a log nor a recording."""


class NotALogError(UnusableFileError):
    """The same, and nothing shows that it was meant to be one."""


@frozen
class _Found:
    """One file, or member of an archive, and its kind by its head; a log has its framework."""

    part: Part
    kind: Kind
    framework: str | None = None
    log: LogPart | None = None
    what: str = ""
    advice: str = ""
    known: bool = False
    """Whether `what` names a known kind of file that CrystalPerf does not read."""


def choose(inputs: Inputs, app: str | None = None, *, newest: bool = False) -> Application:
    """The only application, or the one with id `app` (`app-1`, or `app-1/2` for its attempt 2); of several attempts
    the newest, and of several applications too if `newest`.

    Raises InputError if there is none, or several without `newest`.
    """
    if not inputs.applications:
        what = "the input has only recordings of stack samples" if inputs.samples else "the input has none"
        raise InputError(f"no {_logs(article=False)}: {what}{_hints()}")
    found = [each for each in inputs.applications if app in (None, each.app_id, f"{each.app_id}/{each.attempt}")]
    ids = list(dict.fromkeys(each.app_id for each in found))
    if not found:
        named = shortened(app) or ""
        raise InputError(f"no application '{named}' in the input; it has {_listed(inputs.applications)}")
    if len(ids) > 1 and not newest:
        listed = {"applications": _listed(inputs.applications)}
        raise InputError(f"the input has {len(ids)} applications", Remedy("choose an application", listed))
    return found[0]


def choice(inputs: Inputs, chosen: Application) -> Problem | None:
    """The note that the inputs have other applications or attempts than the chosen one; None if they have none."""
    others = [each for each in inputs.applications if each is not chosen]
    if not others:
        return None
    same = [each for each in others if each.app_id == chosen.app_id]
    which = chosen.app_id if chosen.attempt is None else f"attempt {chosen.attempt} of {chosen.app_id}"
    newest = "the newest, " if chosen is inputs.applications[0] else ""
    several = (
        f"{len(inputs.applications)} attempts of one application"
        if len(same) == len(others)
        else f"logs of {len({each.app_id for each in inputs.applications})} applications"
    )
    meaning = f"the input has {several}; this answer is of {newest}{which}; others: {_listed(others, chosen)}"
    return Problem("several_applications", "info", chosen.log.origin, 1, None, meaning)


def _logs(*, article: bool = True) -> str:
    """The names of the frameworks' logs, with `or` before the last."""
    words = [each.vocabulary.log for each in readable().values()]
    return either([word if article else word.partition(" ")[2] for word in words])


def _hints() -> str:
    """Where users find their logs, after a semicolon."""
    return "".join(f"; {hint}" for each in readable().values() if (hint := each.vocabulary.log_hint))


def discover(paths: Sequence[str | Path]) -> Inputs:
    """The logs and recordings in the given files, folders and URLs, in any order.

    Raises InputError, one sentence, for a path that does not exist or cannot be read, and for a named file that is
    neither a log nor a recording; within a folder such files are counted in `problems`.
    """
    if not paths:
        raise InputError("no input: name an event log, and recordings of stack samples if you have any")
    problems = Problems()
    for what, why in broken().items():
        problems.add("broken_plugin", "error", what, None, f"the package of {what} could not be loaded: {why}")
    found: dict[str, _Found] = {}
    passed_over: list[_Found] = []
    refused: list[tuple[str, InputError]] = []
    for path in map(str, paths):
        try:
            for each in _files(path, problems, passed_over):
                found.setdefault(each.part.name, each)
        except UnusableFileError as error:  # one of several files must not prevent the analysis of the others
            refused.append((path, error))
    samples = [
        SampleFile(each.part.path, kind)
        for each in sorted(found.values(), key=lambda each: each.part.name)
        for kind in SAMPLE_KINDS
        if each.kind == kind
    ]
    logs: dict[str, list[LogPart]] = {}
    for each in found.values():
        if each.framework is not None and each.log is not None:
            logs.setdefault(each.framework, []).append(each.log)
    gathered = [each for name, parts in logs.items() for each in _gathered(readable()[name], parts, problems)]
    applications = _newest_first(gathered, problems)
    if refused and not applications:
        raise refused[0][1]
    for named, reason in refused:
        problems.add("unusable_file", "data loss", named, None, f"not used: {shortened(str(reason))}")
    if not applications and not samples:
        others = f"; {(first := passed_over[0]).part.name} is {first.what}" if passed_over else ""
        raise InputError(
            f"{', '.join(map(str, paths))}: has neither {_logs()} nor a recording of stack samples{others}{_hints()}"
        )
    return Inputs(tuple(applications), tuple(samples), tuple(problems))


# Files ------------------------------------------------------------------------------------------------------------


def _files(path: str, problems: Problems, passed_over: list[_Found]) -> Iterator[_Found]:
    """The usable files of a path that the user named; the first of another known kind is added to `passed_over`."""
    path = local(path)
    if is_url(path):
        yield from _url_files(path, problems, passed_over)
    elif os.path.isdir(path):
        yield from _folder_files(path, problems, passed_over)
    elif not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder")
    else:
        yield from _named(_sniff(Part(path), path, problems))


def _url_files(url: str, problems: Problems, passed_over: list[_Found]) -> Iterator[_Found]:
    system, inner = filesystem(url)
    with as_input_error(url):
        is_folder = system.isdir(inner)
        if not is_folder and not system.exists(inner):
            raise InputError(f"{url}: no such file or folder")
        below = sorted(system.find(inner)) if is_folder else []
    if not is_folder:
        yield from _named(_sniff(Part(url), url, problems))
        return
    yield from _unnamed((system.unstrip_protocol(each) for each in below), url, problems, passed_over)


def _folder_files(folder: str, problems: Problems, passed_over: list[_Found]) -> Iterator[_Found]:
    def refused(error: OSError) -> None:
        if error.filename == folder:
            raise InputError(f"{folder}: cannot be read ({error.strerror}); check its permissions") from error
        meaning = "folders that cannot be read were skipped"
        problems.add("unreadable_folder", "data loss", folder, error.filename, meaning)

    paths: list[str] = []
    for where, folders, files in os.walk(folder, onerror=refused):  # never follows links to folders
        folders.sort()
        paths += (os.path.join(where, name) for name in sorted(files) if not name.startswith("."))
        if len(paths) > _MAX_FILES:
            raise InputError(f"{folder}: has more than {_MAX_FILES} files; name the folder of one application")
    yield from _unnamed(paths, folder, problems, passed_over)


def _is_mark(path: str) -> bool:
    """Whether a file is a framework's mark of a log's state."""
    name = os.path.basename(path)
    return any(each.marks is not None and each.marks.match(name) for each in recognisers())


def _unnamed(paths: Iterable[str], folder: str, problems: Problems, passed_over: list[_Found]) -> Iterator[_Found]:
    """The usable files within a folder that the user named; other files are counted in `problems`."""
    for path in paths:
        try:
            found = _sniff(Part(path), path, problems)
        except InputError as error:
            problems.add("unreadable_file", "data loss", folder, path, f"files were skipped: {error}")
            continue
        for each in found:
            if each.kind in ("unknown", "zip", "tar"):
                if _is_mark(path):
                    continue
                meaning = "files that are neither logs nor recordings of samples were skipped"
                problems.add("other_file", "info", folder, path, meaning)
                if each.known and not passed_over:
                    passed_over.append(each)
            elif each.kind != "empty":
                yield each


def _named(found: list[_Found]) -> list[_Found]:
    """The logs and recordings in a file that the user named.  Raises InputError if it has none."""
    good = [each for each in found if each.kind == "log" or each.kind in SAMPLE_KINDS]
    if good:
        return good
    first = found[0]
    archive_of = {each: f"is a {each} archive without {_logs()} in it" for each in ("zip", "tar")}
    what = {"empty": "is empty", **archive_of}.get(first.kind)
    advice = f"; {first.advice}" if first.advice else ""
    kind = NotALogError if first.kind != "empty" and not first.advice else UnusableFileError
    raise kind(
        f"{first.part.path}: {what or f'is {first.what}'}; CrystalPerf reads {_logs()}, and stack samples as a JFR"
        " recording, collapsed stacks, a pprof or speedscope profile, text of `perf script`, or a profile of cProfile"
        f" or memory_profiler{advice}"
    )


def _sniff(part: Part, path: str, problems: Problems) -> list[_Found]:
    """The kind of a file by its first bytes; several results for an archive."""
    folder, name = os.path.split(path)
    with opened(part) as stored:
        start = stored.read(4096)
    if not start:
        return [_Found(part, "empty")]
    if start.startswith(ZIP_MAGIC) and part.member is None:
        found = _sniff_members(path, problems)
        return found or [_Found(part, "zip")]
    if _is_recording(start):
        return [_Found(part, "jfr")]
    text = head(part, HEAD_BYTES)
    if is_tar(text) and part.member is None:
        return _sniff_members(path, problems) or [_Found(part, "tar")]
    if text.lstrip()[:1] == b"{" and _is_flame_graph(text):
        return [_Found(part, "collapsed")]
    beginning = Head(part, as_text(folder), as_text(name), _size(part), text)
    for framework in recognisers():
        if (log := _recognised(framework, beginning, problems)) is not None:
            return [_Found(part, "log", framework.name, log)]
    if (kind := _profile_kind(text)) is not None:
        return [_Found(part, kind)]
    if _is_collapsed(text):
        return [_Found(part, "collapsed")]
    return [_unknown(part, path, start, text)]


def _recognised(framework: Recogniser, beginning: Head, problems: Problems) -> LogPart | None:
    """A framework's result for a file; if another package's framework fails, its error becomes a problem."""
    try:
        return framework.recognise(beginning)
    except (CrystalPerfError, MemoryError):
        raise
    except Exception as error:
        if is_built_in(framework.name):
            raise
        meaning = f"the package of {readable()[framework.name].title} cannot inspect files: {shortened(repr(error))}"
        problems.add("broken_plugin", "error", framework.name, beginning.part.name, meaning)
        return None


def _unknown(part: Part, path: str, start: bytes, text: bytes) -> _Found:
    """The description of a file that no reader knows; `unsupported` is imported only for such a file."""
    from crystalperf.query.inputs import unsupported

    known = unsupported.described(start, text)
    if known is None:
        return _Found(part, "unknown", what=_described(start, text))
    own = _own_database(path) if unsupported.is_database(start) else None
    return _Found(part, "unknown", what=own or known.what, advice=known.advice, known=True)


def _is_recording(start: bytes) -> bool:
    """Whether a file is a JFR recording; the reader is not imported for a log in JSON."""
    if start.startswith(b"{"):
        return False
    from crystalperf.query.recordings.jfr import is_jfr

    return is_jfr(start)


def _is_flame_graph(text: bytes) -> bool:
    """Whether a file is a flame graph of Flink; its reader is imported only for JSON that may be one."""
    if b'"root"' not in text[:4096]:
        return False
    from crystalperf.query.recordings.flame_graph import is_flame_graph

    return is_flame_graph(text)


def _profile_kind(text: bytes) -> SampleKind | None:
    """The kind of another profiler's file; their readers are imported only if no framework knows the file."""
    from crystalperf.query.recordings import profiles

    return profiles.kind_of(text)


def _sniff_members(path: str, problems: Problems) -> list[_Found]:
    """The logs within a zip or tar archive; unreadable members are left out."""
    found: list[_Found] = []
    members(path)  # raises InputError if the archive cannot be opened
    with archive(path):
        names = members(path)
        if len(names) > _MAX_FILES:
            raise InputError(
                f"{path}: has more than {_MAX_FILES} files; unpack it, and name the files of one application"
            )
        refused = None
        for name in names:
            try:
                found += (each for each in _sniff(Part(path, name), f"{path}!/{name}", problems) if each.kind == "log")
            except InputError as error:
                refused = error
                problems.add("unreadable_file", "data loss", path, name, f"files were skipped: {error}")
    if refused is not None and not found:
        raise refused
    return found


def _size(part: Part) -> int:
    if part.member is not None or is_url(part.path):
        return 0
    return os.stat(part.path).st_size


def _is_collapsed(text: bytes) -> bool:
    """Whether a text has collapsed stacks, one a line: frames with semicolons between them, a space, a weight."""
    try:
        lines = text[: text.rfind(b"\n")].decode().split("\n") if b"\n" in text else [text.decode()]
    except UnicodeDecodeError:
        return False
    lines = [line for line in lines if line.strip() and not line.startswith(_COMMENT)][:200]
    good = sum(_COLLAPSED_LINE.fullmatch(line) is not None for line in lines)
    return good > 0.9 * len(lines) and any(";" in line for line in lines)


def _own_database(path: str) -> str | None:
    """The description of a database that CrystalPerf made, None for any other."""
    kind = None if is_url(path) or "!/" in path else store.kind_of(Path(path))
    what = {"run": "a run file, which CrystalPerf reads only without other inputs", "index": "a resource index"}
    return what.get(kind or "")


def _described(start: bytes, text: bytes) -> str:
    from crystalperf.query.inputs import unsupported

    if start.startswith(_COMPRESSED) and text.startswith(_COMPRESSED):
        return "compressed more than once; unpack it once first"
    if not text.strip():
        return "blank"
    if b"\0" in text:
        return "a binary file of unknown kind"
    if unsupported.begins_json(text):
        return "JSON of unknown kind"
    return "text of unknown kind"


# Applications -----------------------------------------------------------------------------------------------------


def _gathered(framework: ReadableFramework, parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """The applications of a framework's logs; without Reader.gather each file is one."""
    if framework.reader.gather is not None:
        return framework.reader.gather(parts, problems)
    return [
        Application(
            framework=framework.name,
            app_id=each.app_id or each.name,
            attempt=each.attempt,
            name=each.app_name,
            started_at_ms=each.started,
            log=LogFile(each.part.name, (each.part,), each.app_id or each.name),
            size=each.size,
        )
        for each in parts
    ]


def _newest_first(applications: list[Application], problems: Problems) -> list[Application]:
    """Attempts of an application, the newest first; of several logs of one attempt the most complete one."""

    def age(each: Application) -> tuple[float, str, bool, int]:
        attempt = (each.attempt or "").zfill(20)
        finished = not each.log.origin.endswith(".inprogress")
        return (each.started_at_ms or 0.0, attempt, finished, each.size)

    ordered = sorted(applications, key=age, reverse=True)
    kept: dict[tuple[str, str, str | None], Application] = {}
    for each in ordered:
        key = each.framework, each.app_id, each.attempt
        if key in kept:
            meaning = f"several logs of one attempt of {each.app_id}; only the newest is used"
            problems.add("repeated_log", "info", each.log.origin, None, meaning)
        else:
            kept[key] = each
    return list(kept.values())


def _listed(applications: Sequence[Application], chosen: Application | None = None) -> str:
    """Their ids and names, each id once; other attempts of `chosen` each."""

    def text(each: Application) -> str:
        if chosen is not None and each.app_id == chosen.app_id:
            return f"{each.app_id}/{each.attempt}"
        return f"{each.app_id} ({each.name})" if each.name else each.app_id

    texts = [text(each) for each in applications]
    texts = list(dict.fromkeys(texts))
    return ", ".join(texts[:20]) + (f" and {len(texts) - 20} more" if len(texts) > 20 else "")
