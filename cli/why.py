"""`crystalperf index show --why`: the evidence of a function's resource vector, and the words that moved the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crystalperf.cli.remedies import error_sentence
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.packing import MEASURED

MAX_WORDS = 8
"""Maximum words for each resource."""

Words = Mapping[str, Sequence[tuple[str, str, float]]]
"""By resource: (field, word, its contribution to the resource's logit)."""


def words(
    index_name: str, facts: Mapping[str, Any], metadata: Mapping[str, str], location: str
) -> tuple[Words | None, str]:
    """The words with the largest contribution to each resource, and a sentence on their source or absence.

    `location` is the source that the user names, '' for a cached or installed one; nothing is downloaded.
    """
    try:
        from crystalperf.indexer.build import text_hash
        from crystalperf.indexer.catalogue import source_at_hand
        from crystalperf.indexer.modelfile import load
        from crystalperf.indexer.parse import parse_file
        from crystalperf.indexer.sources import open_source
        from crystalperf.indexer.vectors import FunctionText
    except ImportError as error:
        return None, (
            f"the words that moved the classifiers need the extra `indexer` ({error.name} is missing):"
            " `pip install '.[indexer]'` in a checkout of CrystalPerf"
        )
    source = open_source(index_name, [location]) if location else source_at_hand(index_name)
    if source is None:
        return None, "the words that moved the classifiers need the source, which is missing; name it with --source"
    file = next((each for each in source.files([]) if each.file == facts["file"]), None)
    if file is None:
        return None, f"the source has no file {facts['file']}, so the words that moved the classifiers are unknown"
    parsed = parse_file(file.text, file.language, file.file)
    matching = [
        (number, each)
        for number, each in enumerate(parsed.functions)
        if each.first_line == facts["first_line"] and each.qualified_name == facts["qualified_name"]
    ]
    number, function = next(
        (each for each in matching if text_hash(each[1].doc, each[1].code) == facts["text_hash"]), (None, None)
    )
    if function is None:
        return (
            None,
            "the function differs between this source and the indexed source; name the indexed source with --source",
        )
    text = FunctionText(
        code=function.code,
        doc=function.doc,
        language=file.language,
        qualified_name=function.qualified_name,
        class_name=function.class_name,
        package=function.package,
        callees=tuple(call.name for call in parsed.calls if call.caller == number),
    )
    try:
        classifier = load()
    except CrystalPerfError as error:
        return None, error_sentence(error)
    same = metadata.get("model_hash") == classifier.identity.get("hash")
    whose = "the model of the index" if same else "the current model, not the model of the index"
    rest = "without the parts of the embedding and the sequence head"
    return classifier.explain(text, MAX_WORDS), f"by {whose}; {rest}"


def why_text(facts: Mapping[str, Any]) -> str:
    """The part of `index show` that explains the resource vector of one function."""
    from crystalperf.cli.text import printable

    lines = [f"  input       {facts['code_chars']} characters of code, {facts['doc_chars']} of documentation"]
    if facts["source"] == MEASURED:
        lines.append("  measured    the shares are from calls of this function, not from the model")
    if facts["decided_by"]:
        lines.append(f"  decided by  {facts['decided_by']}; by its own text alone, the label is another one")
    for name, resource in facts["evidence"]["callees"].items():
        lines.append(f"  calls       {name}: {resource}")
    for resource, found in (facts["words"] or {}).items():
        shown = ", ".join(f"{word} ({field} {logit:+.2f})" for field, word, logit in found if logit > 0)
        lines.append(f"  for {resource:7} {shown or 'nothing'}")
    lines.append(f"  words       {facts['words_from']}")
    lines += [f"  {key.replace('_', ' '):11} {value}" for key, value in facts["provenance"].items()]
    return "\n".join(printable(each) for each in lines) + "\n"
