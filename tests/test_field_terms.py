"""Each term of the field leads to the code about it, and to the glossary."""

from __future__ import annotations

import re

import pytest

from tests.field_terms import CORE, REST, ROOT, TERMS, names, places, words_of


@pytest.mark.parametrize("term", TERMS)
def test_term_is_in_a_name_of_the_core(term: str) -> None:
    assert places(term)


def test_glossary_defines_each_term() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    defined = [words_of(row) for row in rows]
    for term in TERMS:
        wanted = words_of(term)
        assert any(row[start : start + len(wanted)] == wanted for row in defined for start in range(len(row))), term


@pytest.mark.parametrize("word", ["told", "lent", "anew", "beside", "settled", "stretch", "chance"])
def test_no_name_has_a_word_of_the_old_dialect(word: str) -> None:
    assert not [place for words, where in names((*CORE, *REST)).items() if word in words for place in where]


def test_words_of_a_name_are_those_of_a_term() -> None:
    assert words_of("critical_path_ms") == ("critical", "path", "m")
    assert words_of("WhatIfs") == words_of("what-if")
    assert words_of("JVMWarmUp") == ("jvm", "warm", "up")
