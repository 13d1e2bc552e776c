"""Conversion of comments and docstrings to plain documentation text."""

from __future__ import annotations

import inspect
import re

_BLOCK_EDGE = re.compile(r"^/\*+!?<?|\*+/$")
_LINE_EDGE = re.compile(r"^[ \t]*(?:\*+(?!/)|//[/!]<?)[ \t]?", re.MULTILINE)
_INLINE_TAG = re.compile(r"\{@(?:link|linkplain|code|literal|value|inheritDoc|docRoot|index)\b[ \t]*([^{}]*)\}")
_HTML_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]{0,200})?/?>")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&nbsp;": " ", "&quot;": '"', "&#64;": "@", "&amp;": "&"}
_DOXYGEN_MARK = re.compile(r"[@\\](?:brief|details|short)[ \t]+")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n?")


def is_documentation(comment: str) -> bool:
    """Whether a comment is Scaladoc, Javadoc or Doxygen: `/**`, `/*!`, `///`, `//!`."""
    return comment.startswith(("/**", "/*!", "///", "//!")) and not comment.startswith(("/**/", "/***", "////"))


def clean_comment(comment: str) -> str:
    """The text of a documentation comment, without its marks, HTML tags and inline tags.

    >>> clean_comment("/** Reads {@link Block}s.\\n  * @param id <b>which</b>\\n  */")
    'Reads Blocks.\\n@param id which'
    """
    text = _LINE_EDGE.sub("", _BLOCK_EDGE.sub("", comment.strip()))
    text = _INLINE_TAG.sub(r"\1", text)
    text = _HTML_TAG.sub("", text)
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    text = _DOXYGEN_MARK.sub("", text)
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


def clean_docstring(text: str) -> str:
    """The text of a docstring's string literal, dedented and without quotes."""
    text = text.lstrip("rRuUbBfF")
    quote = text[:3] if text[:3] in ('"""', "'''") else text[:1]
    text = text.removeprefix(quote).removesuffix(quote)
    return inspect.cleandoc(text).strip()
