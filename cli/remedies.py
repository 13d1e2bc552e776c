"""Remedies of errors in the terminal's terms: flags and commands to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crystalperf.cli.text import shell_word
from crystalperf.query.text.sentences import text_of

if TYPE_CHECKING:
    from crystalperf.indexes.errors import CrystalPerfError, Remedy
    from crystalperf.query.results.not_recorded import NotRecorded
    from crystalperf.query.results.words import Words


def error_sentence(error: CrystalPerfError) -> str:
    """One sentence: what happened, where, and what to type."""
    return with_remedy(str(error), error.remedy)


def not_recorded_sentence(not_recorded: NotRecorded, words: Words) -> str:
    """One sentence: what the run does not show, and what to type to change that."""
    sentence = with_remedy(text_of(not_recorded, words), not_recorded.remedy)
    again = not_recorded.remedy is not None and not_recorded.remedy.kind == "build the index"
    return f"{sentence}, and analyze again" if again else sentence


def with_remedy(sentence: str, remedy: Remedy | None) -> str:
    """The sentence, extended by its remedy."""
    if remedy is None:
        return sentence
    facts = {name: fact if name == "applications" else shell_word(fact) for name, fact in remedy.facts.items()}
    template = {
        "state what the run had": "; add --recorded {setting}=…, or use a ratio such as {setting}=2x",
        "state a setting": "; add --recorded {setting}=VALUE",
        "choose an application": "; choose one with --app: {applications}",
        "choose a job": "; choose one with --job",
        "give it as standard input": "; pipe it in instead: … | crystalperf analyze -",
        "choose another place": "; choose another place",
        "choose another folder": "; choose another folder",
        "replace it": "; choose another place, or replace it with --force",
        "profile again": "; create it again with `crystalperf profile LOGS`",
        "build the index": "; build one with `crystalperf index build {index}`",
        "build the index again": "; build it again with `crystalperf index build`",
        "verify the index": "; check it with `crystalperf index verify {index}`",
        "vouch for the index": "; if you trust it, add --trust",
        "change the scope": "; choose another with --scope",
        "name other runs": "; name other runs of the job with --with",
        "set up the job": "; `crystalperf setup {framework}` shows what to add to the job",
        "give it more time": "; raise --timeout",
        "set a token": "; put one into a file for --token-file, or into CRYSTALPERF_TOKEN",
        "ask a run": "; add --run RUN",
        "ask an index": "; add --index NAME",
        "index the code": f"; run `crystalperf index build {_last(facts)}-1 --source PATH` and analyze again",
        "index the library": "; run `crystalperf index build {library}-VERSION` with the version that ran, and analyze"
        " again",
    }[remedy.kind]
    return sentence + template.format_map(_Known(facts))


def _last(facts: Mapping[str, str]) -> str:
    """The last part of a package prefix, as the name of an index."""
    return facts.get("prefix", "NAME").rpartition(".")[2]


class _Known(dict[str, str]):
    """Facts of a remedy; a missing one becomes a placeholder in capitals."""

    def __missing__(self, name: str) -> str:
        return name.upper()
