"""The binary tree of a function's code (paper, §3.2): its syntax tree, with artificial nodes.

    trees = binary_trees(functions, words)       one for each function, of which some may be empty
    levels = by_level(trees)                     several trees as one batch

The leaves of a syntax tree are identifiers, type names, literals and keywords, if they have a known word.  Punctuation,
operators, numbers and comments are omitted.  A node with one child is replaced by that child.  A node with more than
two gets artificial nodes, each over one half of its children.  White et al. 2016 require any binary tree; halves keep
it shallow, so that the first of fifty statements is not fifty steps from the root.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from tree_sitter import Language as Grammar
from tree_sitter import Parser, TreeCursor

from crystalperf.indexer.classify import FIELDS
from crystalperf.indexer.embed import Ids, Words
from crystalperf.indexer.vectors import Floats, FunctionText

_Item = tuple[int, int, int]
"""A node while a tree is built: its number (negative for inner nodes), its number of leaves, its height."""


@dataclass(frozen=True)
class Tree:
    """A full binary tree of k leaves: nodes 0 to k − 1 are the leaves, the last is the root."""

    leaves: Ids
    """(k,) numbers of the identifiers."""
    children: Ids
    """(k − 1, 2) nodes; children precede their parent."""
    sizes: Ids
    """(k − 1, 2) number of leaves of each child."""
    heights: Ids
    """(k − 1,) 1 for a parent of two leaves."""


@dataclass(frozen=True)
class Forest:
    """The trees of functions, and the identifiers at their leaves."""

    trees: tuple[Tree, ...]
    ids: Ids
    """The words of all identifiers, as `Words.encode` gives them."""
    starts: Ids

    @property
    def empty(self) -> int:
        """The number of functions without a tree."""
        return sum(not len(each.leaves) for each in self.trees)


@dataclass(frozen=True)
class Levels:
    """Trees as one batch: all leaves, then all inner nodes from the lowest level to the highest."""

    leaves: Ids
    """(k,) numbers of the identifiers."""
    children: Ids
    """(m, 2) nodes"""
    shares: Floats
    """(m, 2) each child's share of its parent's leaves."""
    bounds: tuple[tuple[int, int], ...]
    """Where each level starts and ends among the inner nodes."""
    roots: Ids
    """(trees,) root nodes of the non-empty trees."""


def binary_trees(functions: Sequence[FunctionText], words: Words) -> Forest:
    """The trees of the code that classifiers read (classify.FIELDS); empty for code without a known word."""
    numbers: dict[str, int] = {}
    known: dict[str, bool] = {}

    def number(text: str) -> int | None:
        if text not in known:
            known[text] = bool(len(words.encode([text])[0]))
        return numbers.setdefault(text, len(numbers)) if known[text] else None

    trees = []
    for each in functions:
        code = FIELDS["code"](each).encode("utf-8", "replace")
        trees.append(_binary_tree(_parser(each.language).parse(code).walk(), code, number))
    return Forest(tuple(trees), *words.encode(list(numbers)))


def by_level(trees: Sequence[Tree]) -> Levels:
    """Several trees as one batch, in which nodes of the same height are computed together."""
    trees = [each for each in trees if len(each.leaves)]
    leaves = np.array([len(each.leaves) for each in trees], np.int64)
    inner = leaves - 1
    heights = np.concatenate([each.heights for each in trees])
    order = np.argsort(heights, kind="stable")
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    # The new number of every node, tree after tree, each with its leaves first.
    before, total = np.cumsum(leaves) - leaves, int(leaves.sum())
    inner_before = np.cumsum(inner) - inner
    renumbered = [
        np.concatenate([first + np.arange(k), total + position[first_inner : first_inner + k - 1]])
        for first, first_inner, k in zip(before, inner_before, leaves, strict=True)
    ]
    children = np.concatenate([new[each.children] for each, new in zip(trees, renumbered, strict=True)])[order]
    sizes = np.concatenate([each.sizes for each in trees])[order]
    ends = np.cumsum(np.bincount(heights, minlength=1)[1:])
    return Levels(
        np.concatenate([each.leaves for each in trees]),
        children,
        np.asarray(sizes / sizes.sum(axis=1, keepdims=True), dtype=np.float32),
        tuple(pairwise([0, *ends.tolist()])),
        np.array([new[-1] for new in renumbered], np.int64),
    )


@cache
def _parser(language: str) -> Parser:
    return Parser(Grammar(importlib.import_module(f"tree_sitter_{language}").language()))


def _binary_tree(cursor: TreeCursor, code: bytes, number: Callable[[str], int | None]) -> Tree:
    """The binary tree, by a cursor: recursion would fail on deeply nested hostile code."""
    leaves: list[int] = []
    inner: list[tuple[_Item, _Item]] = []
    open_nodes: list[list[_Item]] = [[]]
    while True:
        node = cursor.node
        if node is not None and "comment" not in node.type:
            if cursor.goto_first_child():
                open_nodes.append([])
                continue
            leaf = number(code[node.start_byte : node.end_byte].decode("utf-8", "replace"))
            if leaf is not None:
                leaves.append(leaf)
                open_nodes[-1].append((len(leaves) - 1, 1, 0))
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return _numbered(leaves, inner)
            children = open_nodes.pop()
            if children:
                open_nodes[-1].append(_joined(children, inner))


def _joined(children: Sequence[_Item], inner: list[tuple[_Item, _Item]]) -> _Item:
    """One node over the children, of logarithmic depth; new inner nodes are appended to `inner`."""
    if len(children) == 1:
        return children[0]
    half = len(children) // 2
    left, right = _joined(children[:half], inner), _joined(children[half:], inner)
    inner.append((left, right))
    return -len(inner), left[1] + right[1], 1 + max(left[2], right[2])


def _numbered(leaves: list[int], inner: list[tuple[_Item, _Item]]) -> Tree:
    pairs = np.array(inner, np.int64).reshape(-1, 2, 3)
    numbers, sizes, heights = pairs[..., 0], pairs[..., 1], pairs[..., 2]
    children = np.where(numbers < 0, len(leaves) - 1 - numbers, numbers)
    return Tree(np.array(leaves, np.int64), children, sizes, 1 + heights.max(axis=1, initial=0))
