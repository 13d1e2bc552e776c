"""The outcome of a gate for CI systems: Markdown, JUnit XML, annotations of GitHub, code quality of GitLab.

GitHub reads workflow commands (`::error title=…::…`) from the standard output of a step.  GitLab shows the entries of a
code quality report in a merge request: description, check_name, fingerprint, severity and location are all that it
reads.  Both know files, so an entry refers to the file with the budgets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from crystalperf.cli.remedies import with_remedy
from crystalperf.query.compare.budgets import SLOWDOWN
from crystalperf.query.results.gate import Check, Gate
from crystalperf.query.text.figures import printable
from crystalperf.query.text.gate import HEADS, cells, check_sentence, headline, notes

_COMMANDS = {"over": "error", "undecided": "warning", "within": "notice"}
_SEVERITIES = {"over": "major", "undecided": "minor"}


def sentence(check: Check, answer: Gate) -> str:
    """A check as a sentence without its end, with the remedy if it is undecided."""
    remedy = check.undecided.remedy if check.undecided is not None else None
    return printable(with_remedy(check_sentence(check, answer.words), remedy))


def markdown(answer: Gate, _file: Path | None) -> str:
    """A comment of a pull request, or the summary of a step."""
    lines = [f"### {_cell(headline(answer))}", "", f"`crystalperf gate` of {_cell(answer.name)}", ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}"]
    for each in answer.checks:
        name, *rest, outcome = map(_cell, cells(each))
        lines.append(f"| {name} | {' | '.join(rest)} | {outcome if outcome == 'within' else f'**{outcome}**'} |")
    reasons = [f"{sentence(each, answer)}." for each in answer.checks if each.undecided is not None]
    more = [*notes(answer), *reasons]
    return "\n".join([*lines, *([""] if more else []), *(f"- {_cell(each)}" for each in more)]) + "\n"


def _cell(text: str) -> str:
    """Text of a log as text of Markdown: no table, no HTML, no link, no mention of a user."""
    escaped = "".join(f"\\{each}" if each in "\\`*_[]|#" else each for each in printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def junit(answer: Gate, _file: Path | None) -> str:
    """A test suite with a test case for each budget: over is a failure, undecided an error."""
    outcomes = [each.outcome for each in answer.checks]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("over")),
        "errors": str(outcomes.count("undecided")),
    }
    suites = ElementTree.Element("testsuites", {"name": "crystalperf gate", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _xml(answer.name), **counts, "skipped": "0"})
    for each in answer.checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "crystalperf.gate", "name": _xml(each.name)})
        said = _xml(sentence(each, answer))
        if each.outcome != "within":
            kind = "failure" if each.outcome == "over" else "error"
            ElementTree.SubElement(case, kind, {"type": each.outcome, "message": said}).text = said
        else:
            ElementTree.SubElement(case, "system-out").text = said
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 does not permit."""
    return "".join(each for each in printable(text) if each not in "\ufffe\uffff")


def github(answer: Gate, file: Path | None) -> str:
    """Workflow commands: an error for a budget that is exceeded, a warning for an undecided one, else a notice."""
    lines = []
    for each in answer.checks:
        place = f"file={_property(str(file))},line={_line(file, each.name)}," if file is not None else ""
        title = _property(f"crystalperf gate: {each.name}")
        lines.append(f"::{_COMMANDS[each.outcome]} {place}title={title}::{_data(sentence(each, answer))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gitlab(answer: Gate, file: Path | None) -> str:
    """A code quality report: an entry for each budget that is exceeded or undecided."""
    path = Path(".gitlab-ci.yml") if file is None else file
    entries = [
        {
            "description": sentence(each, answer),
            "check_name": f"crystalperf gate: {each.name}",
            "fingerprint": hashlib.sha256(f"{printable(answer.name)}\0{each.name}".encode()).hexdigest(),
            "severity": _SEVERITIES[each.outcome],
            "location": {"path": path.as_posix(), "lines": {"begin": _line(file, each.name)}},
        }
        for each in answer.checks
        if each.outcome != "within"
    ]
    return json.dumps(entries, indent=2) + "\n"


def _line(file: Path | None, name: str) -> int:
    """The line of a budget in the file that states it; 1 if it is not there."""
    if file is None:
        return 1
    key = "max-slowdown" if name == SLOWDOWN else name
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.strip().strip('"').startswith(key)), 1)


FORMATS: Mapping[str, Callable[[Gate, Path | None], str]] = {
    "markdown": markdown,
    "junit": junit,
    "github": github,
    "gitlab": gitlab,
}
