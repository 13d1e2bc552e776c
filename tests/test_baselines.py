"""The paper's classifiers as baselines: binary trees, recursive autoencoder, GRU, and their tables."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused

pytest.importorskip("torch", reason="needs the indexer's packages: pip install '.[indexer]'")
pytest.importorskip("sentence_transformers", reason="needs the indexer's packages: pip install '.[indexer]'")

import torch

from crystalperf.indexer.baselines import __main__ as baselines
from crystalperf.indexer.baselines import autoencoder, documents
from crystalperf.indexer.baselines.trees import Forest, Tree, binary_trees, by_level
from crystalperf.indexer.embed import Words, new_words
from crystalperf.indexer.vectors import FunctionText
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.resources import resources

pytestmark = pytest.mark.later

VERBS = {
    "cpu": ("hash", "compress", "encode", "sort"),
    "disk": ("delete", "truncate", "rename", "list"),
    "net": ("connect", "send", "receive", "accept"),
}
CODE = {
    "scala": "def {verb}(a: Int) = {{ val b = {verb}Next(a); other.{verb}(b) }}",
    "java": "public int {verb}(int a) {{ int b = {verb}Next(a); return other.{verb}(b); }}",
    "python": "def {verb}(self, a):\n    b = {verb}_next(a)\n    return self.other.{verb}(b)",
    "cpp": "int Store::{verb}(int a) {{ int b = {verb}_next(a); return other->{verb}(b); }}",
}


def function(code: str, language: str = "java", doc: str = "") -> FunctionText:
    return FunctionText(code, doc, language, "a.B.f", "B", "a", ())


def labelled(resource: str, number: int, languages: tuple[str, ...] = tuple(CODE)) -> FunctionText:
    verb = VERBS[resource][number % 4]
    language = languages[number % len(languages)]
    doc = f"Does {verb} and then {VERBS[resource][(number + 1) % 4]} all of it" if number % 3 else ""
    return function(CODE[language].format(verb=verb), language, doc)


@pytest.fixture
def words() -> Words:
    return new_words([*"abcdefgh", "int", "return", "other", "next", "read", "fully"])


def leaves_of(tree: Tree, forest: Forest, words: Words) -> list[str]:
    names = sorted(words.tokenizer.get_vocab(), key=lambda word: words.tokenizer.get_vocab()[word])
    bounds = list(pairwise(forest.starts))
    return [" ".join(names[each] for each in forest.ids[slice(*bounds[leaf])]) for leaf in tree.leaves]


def random_forest(seed: int) -> Forest:
    """Trees of one-letter words, of all shapes."""
    rng = random.Random(seed)

    def expression(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice("abcdefgh")
        return f"{rng.choice('abcdefgh')}({', '.join(expression(depth - 1) for _ in range(rng.randint(1, 5)))})"

    code = [function(f"int f() {{ return {expression(5)}; }}") for _ in range(6)]
    return binary_trees(code, new_words([*"abcdefgh", "return"]))


# Trees


def test_leaves_are_the_words_of_the_code_in_order(words: Words) -> None:
    forest = binary_trees([function("int f(int a) { /* b */ return readFully(a + 1, g); }")], words)
    assert leaves_of(forest.trees[0], forest, words) == ["int", "f", "int", "a", "return", "read fully", "a", "g"]


def test_a_tree_is_full_and_children_come_first() -> None:
    for tree in random_forest(1).trees:
        count = len(tree.leaves)
        assert tree.children.shape == (count - 1, 2)
        # Every node but the last has exactly one parent.
        assert sorted(tree.children.ravel()) == list(range(2 * count - 2))
        assert (tree.children < np.arange(count, 2 * count - 1)[:, None]).all()
        assert tree.sizes[-1].sum() == count


def test_syntax_shapes_the_tree(words: Words) -> None:
    forest = binary_trees([function("int f() { return a(b(c, d), e); }")], words)
    tree, names = forest.trees[0], leaves_of(forest.trees[0], forest, words)

    def shown(node: int) -> str:
        if node < len(names):
            return names[node]
        left, right = tree.children[node - len(names)]
        return f"({shown(left)} {shown(right)})"

    assert "(return (a ((b (c d)) e)))" in shown(2 * len(names) - 2)


@pytest.mark.parametrize("code", ["", "{}", "((((", "\x00\ud800", "1 + 2", "zebra(zoo)"])
def test_code_without_words_is_an_empty_tree(words: Words, code: str) -> None:
    forest = binary_trees([function(code, language) for language in CODE], words)
    assert forest.empty == len(CODE)
    model = autoencoder.new_autoencoder(np.ones((words.size, 4), np.float32), True, 0)
    assert not autoencoder.root_vectors(model, forest).any()


@pytest.mark.parametrize("language", list(CODE))
def test_deep_nesting_does_not_exceed_the_recursion_limit(words: Words, language: str) -> None:
    forest = binary_trees([function("int f() { return " + "(a" * 1900, language)], words)
    assert len(forest.trees[0].leaves) > 1000


def test_one_batch_holds_the_same_trees() -> None:
    forest = random_forest(2)
    levels = by_level(forest.trees)
    sizes = np.concatenate([np.ones(len(levels.leaves), np.int64), np.zeros(len(levels.children), np.int64)])
    for start, end in levels.bounds:
        for at in range(start, end):
            children = sizes[levels.children[at]]
            assert (children > 0).all(), "a child is computed after its parent"
            np.testing.assert_allclose(levels.shares[at], children / children.sum(), rtol=1e-6)
            sizes[len(levels.leaves) + at] = children.sum()
    assert list(sizes[levels.roots]) == [len(tree.leaves) for tree in forest.trees]


# The recursive autoencoder


def model_for(forest: Forest, has_tanh: bool, seed: int = 0) -> autoencoder.Autoencoder:
    size = int(forest.ids.max()) + 1
    table = np.random.default_rng(seed).normal(size=(size, 6)).astype(np.float32)
    return autoencoder.new_autoencoder(table, has_tanh, seed)


def slow_error(
    model: autoencoder.Autoencoder, forest: Forest, weights: list[torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The error as the paper's formula reads, tree by tree with autograd; and the roots."""
    leaves = autoencoder.leaf_vectors(model, forest)
    errors, roots = [], []
    for tree in forest.trees:
        nodes = [leaves[leaf].double() for leaf in tree.leaves]
        for (left, right), sizes in zip(tree.children, tree.sizes, strict=True):
            pair = torch.cat([nodes[left], nodes[right]])
            parent = weights[0] @ pair + weights[1]
            parent = parent.tanh() if model.has_tanh else parent
            nodes.append(parent / parent.norm())
            squares = (weights[2] @ nodes[-1] + weights[3] - pair.detach()).square().view(2, -1).sum(1)
            errors.append((squares * torch.from_numpy(sizes / sizes.sum())).sum())
        roots.append(nodes[-1])
    return torch.stack(errors).mean(), roots


@pytest.mark.parametrize("has_tanh", [False, True])
def test_vectors_error_and_gradients_are_those_of_autograd(has_tanh: bool) -> None:
    forest = random_forest(3)
    model = model_for(forest, has_tanh)
    weights = [each.double().requires_grad_() for each in model.weights]
    expected, roots = slow_error(model, forest, weights)
    expected.backward()
    levels = by_level(forest.trees)
    error, gradients = autoencoder.error_of(
        model, levels, *autoencoder.encode(model, levels, autoencoder.leaf_vectors(model, forest))
    )
    assert error == pytest.approx(expected.item(), rel=1e-5)
    for ours, weight in zip(gradients, weights, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(ours.double(), weight.grad, rtol=1e-4, atol=1e-6)
    found = autoencoder.root_vectors(model, forest, batch=2)
    np.testing.assert_allclose(found, torch.stack(roots).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("has_tanh", [False, True])
def test_training_lowers_the_error_and_is_repeatable(has_tanh: bool) -> None:
    forest = random_forest(4)
    training = autoencoder.Training(epochs=20, batch=2, rate=1e-2)
    first, second = model_for(forest, has_tanh), model_for(forest, has_tanh)
    errors = autoencoder.train_autoencoder(first, forest, training, seed=1)
    assert errors[-1] < 0.8 * errors[0]
    assert autoencoder.train_autoencoder(second, forest, training, seed=1) == errors


# Documentation


def test_links_and_punctuation_are_not_words() -> None:
    words = new_words(["see", "read", "http", "org", "html"])
    ids, starts = documents.cut_documents(["See http://read.org/a.html, read!", "www.read.org", ""], words)
    assert [list(ids[a:b]) for a, b in pairwise(starts)] == [[1, 2], [], []]


def test_words_in_similar_contexts_have_similar_vectors() -> None:
    words = new_words(["cat", "dog", "eats", "runs", "red", "blue", "paint", "wall"])
    rng = random.Random(0)
    texts = [f"{rng.choice(['cat', 'dog'])} {rng.choice(['eats', 'runs'])}" for _ in range(200)]
    texts += [f"{rng.choice(['red', 'blue'])} {rng.choice(['paint', 'wall'])}" for _ in range(200)]
    vectors = documents.word_vectors(words.encode(texts), words.size, 4, seed=0)
    likeness = vectors @ vectors.T
    cat, dog, red = 1, 2, 5
    assert likeness[cat, dog] > 0.9
    assert likeness[cat, red] < 0.5
    assert not vectors[0].any()


def test_the_state_is_that_of_a_gru_over_the_words_alone() -> None:
    table = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    reader = documents.new_reader(table, 4, seed=0)
    part = (np.array([1, 2, 3, 8, 4]), np.array([0, 3, 3, 5]))
    vectors = documents.document_vectors(reader, part)
    for row, ids in ((0, [1, 2, 3]), (2, [8, 4])):
        state = reader.gru(torch.from_numpy(table[ids])[None])[1][0, 0]
        np.testing.assert_allclose(vectors[row], state.detach().numpy(), atol=1e-6)
    assert not vectors[1].any()


def test_reader_learns_to_distinguish_words() -> None:
    rng = np.random.default_rng(0)
    texts = [[1, 2, 3, 4] if each else [5, 6, 7, 8] for each in rng.random(200) < 0.5]
    part = (np.array([word for text in texts for word in text]), np.arange(0, 801, 4))
    reader = documents.new_reader(np.eye(9, dtype=np.float32), 8, seed=0)
    losses = documents.train_reader(reader, part, documents.Training(reads=30 * 200, batch=32, rate=1e-2), seed=0)
    assert losses[0] > 1.8
    assert losses[-1] < 1.45  # ln 4 where it is known which four words a text has


def test_a_head_by_sgd_separates_separable_classes() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    vectors = (np.eye(3)[labels] + 0.1 * rng.normal(size=(300, 3))).astype(np.float32)
    head = documents.sgd_head(vectors, labels, 3, seed=0)
    assert (head(torch.from_numpy(vectors)).argmax(1).numpy() == labels).mean() > 0.99


# All of it


def write_texts(path: Path) -> Path:
    lines = []
    for name, library, count in (("train", "jdk-java.base", 36), ("dev-a", "mine", 9), ("dev-b", "mine", 9)):
        for number in range(count):
            for resource in resources():
                text = labelled(resource, number)
                record = {"set": name, "library": library, "file": f"f{number}.x", "language": text.language}
                record |= {"label": resource, "weight": 1.0, "code": text.code, "doc": text.doc, "package": "a"}
                lines.append(json.dumps({**record, "qualified_name": "a.f", "class_name": None, "callees": []}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


SMALL = baselines.Sizes(functions=200, documents=200, reads=1000, dimensions=8, rarest=2)
CORPUS = [(f"library{number % 2}", labelled(resource, number // 2)) for number in range(80) for resource in VERBS]


@pytest.mark.later  # trains every baseline: 109 s of CPU time
def test_all_tables_are_printed_and_beat_the_majority(tmp_path: Path) -> None:
    said: list[str] = []
    baselines.run(write_texts(tmp_path / "texts.jsonl"), CORPUS, SMALL, 1, said.append)
    rows = [each for each in said if each.startswith("| all | as drawn |")]
    assert len(rows) == 14  # seven arms, trained on all and on Scala alone
    accuracy = {each.split(" | ")[2]: float(each.split(" | ")[3].split("±")[0]) for each in rows[:7]}
    assert accuracy["majority"] == pytest.approx(100 / 3, abs=0.1)
    assert accuracy[baselines.AVERAGE] > 45
    assert accuracy["recursive autoencoder"] > 45
    assert sum(each.startswith("| recursive autoencoder |") for each in said) == 1
    assert any("10 folds by file over python-stdlib, jdk-java.base: 108" in each for each in said)


def test_nothing_of_a_tested_framework_teaches_the_encoders(tmp_path: Path) -> None:
    with refused(InputError, "spark"):
        baselines.run(
            write_texts(tmp_path / "t.jsonl"), [*CORPUS, ("spark", function("int f()"))], SMALL, 1, lambda _: None
        )


def test_a_missing_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert baselines.main(["--texts", str(tmp_path / "none.jsonl"), "--sources", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
