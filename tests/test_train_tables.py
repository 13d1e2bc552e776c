"""The tables on how good the classifiers are: their splits, and that nothing is judged by what it learned from."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the indexer's packages: pip install '.[indexer]'")
pytest.importorskip("sentence_transformers", reason="needs the indexer's packages: pip install '.[indexer]'")
pytest.importorskip("sklearn", reason="the baseline needs scikit-learn, which sentence-transformers brings")

from crystalperf.indexer import embed, evaluate, examples, heads
from crystalperf.indexer.vectors import FunctionText
from crystalperf.indexes.resources import resources

pytestmark = pytest.mark.later

TOPICS = {"cpu": "hash sort encode", "disk": "file delete directory", "net": "socket connect send"}
SETS = {"train": 24, "dev-a": 10, "dev-b": 10, "measured": 5}


def example(set_name: str, resource: str, number: int) -> examples.Example:
    words = TOPICS[resource].split()
    code = f"{words[number % 3]}(x); {words[(number + 1) % 3]}(x)"
    doc = f"It may {words[number % 3]}" if number % 2 else ""
    language = ("scala", "java", "python")[number % 3]
    text = FunctionText(code, doc, language, f"p.C.{words[number % 3]}", "C", "p", (words[number % 3],))
    library = f"library{number % 8}" if set_name == "train" else "other"
    return examples.Example(text, resources().index(resource), set_name, library, f"f{number % 8}", 1.0)


@pytest.fixture(scope="module")
def data() -> examples.Prepared:
    rows = [example(name, each, number) for name, count in SETS.items() for number in range(count) for each in TOPICS]
    words = embed.new_words(" ".join(TOPICS.values()).split())
    table = np.random.default_rng(0).normal(size=(words.size, 8)).astype(np.float32)
    table[0] = 0
    embedding = embed.static_embedding("static", table)
    return examples.prepare(rows, words, embedding, (heads.CODE, heads.DOC))


def test_measured_functions_are_not_a_development_set(data: examples.Prepared) -> None:
    assert data.development == ("dev-a", "dev-b")


def test_folds_by_library_keep_a_library_together(data: examples.Prepared) -> None:
    rows = data.rows("train")
    parts = examples.folds(data, rows, 2, seed=0, by_library=True)
    libraries = [{data.examples[row].library for row in part} for part in parts]
    assert not libraries[0] & libraries[1]
    assert sorted(np.concatenate(parts)) == sorted(rows)


def test_labels_contradicted_by_other_files_are_left_out(data: examples.Prepared) -> None:
    rows = data.rows("train")
    wrong = rows[::25]
    labels = data.labels.copy()
    labels[wrong] = (labels[wrong] + 1) % 3
    kept = heads.uncontradicted(data, rows, labels, seed=0)
    assert not len(np.intersect1d(kept, wrong))
    assert len(kept) == len(rows) - len(wrong)
    # A label is judged by what others say, not by itself.
    assert set(heads.uncontradicted(data, rows, data.labels, seed=0)) >= set(wrong)


def test_pooling_of_a_set_is_fitted_on_the_other_sets(data: examples.Prepared) -> None:
    """Turning the labels of a development set around changes the other's pooling and not its own."""
    both = heads.train_heads(data, data.rows("train"), data.labels)
    judged = heads.judge(both, data, data.rows("dev-a", "dev-b"))
    inside = np.array([data.examples[row].set == "dev-a" for row in judged.rows])
    turned = data.labels.copy()
    turned[judged.rows[inside]] = (turned[judged.rows[inside]] + 1) % 3
    before, after = (evaluate.pooled_by_others(data, judged, judged, labels) for labels in (data.labels, turned))
    np.testing.assert_array_equal(before[inside], after[inside])
    assert np.abs(before[~inside] - after[~inside]).max() > 0.05


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("development", "| dev-b | natural | linear heads, pooled |"),
        ("folds", "5 folds by library over all training libraries: 72 functions"),
        ("measured", "Trained on all training functions, tested on measured ones: 15 functions"),
        ("languages", "| all but java | 48 | java | 24 |"),
        ("noise", "| 20 % of labels flipped |"),
        ("lengths", "| with it |"),
        ("mistakes", "| net | 0 | 0 | 20 |"),
    ],
)
def test_a_table_has_its_rows(data: examples.Prepared, monkeypatch: pytest.MonkeyPatch, name: str, row: str) -> None:
    monkeypatch.setattr(evaluate, "SEEDS", 2)
    said: list[str] = []
    evaluate.TABLES[name](data, said.append)
    assert any(line.startswith(row) for line in "\n".join(said).split("\n"))


def test_topics_that_words_distinguish_are_all_found(data: examples.Prepared) -> None:
    found = evaluate.arms(data, data.rows("train"), data.rows("dev-a"), data.labels)
    for arm in (evaluate.CODE_ARM, evaluate.LINEAR, evaluate.TFIDF):
        assert (found[arm].argmax(axis=1) == data.labels[data.rows("dev-a")]).all(), arm
    documented = data.documented[data.rows("dev-a")]
    assert np.isnan(found[evaluate.DOC_ARM][:, 0]).tolist() == (~documented).tolist()


def test_word_table_marks_words_without_documentation(data: examples.Prepared) -> None:
    said: list[str] = []
    evaluate.table_of_words(data, said.append, top=3)
    lines = dict(line.split(": ", 1) for line in said)
    assert {each.rstrip("*") for each in lines["code, disk"].split(", ")} == set(TOPICS["disk"].split())
    assert "*" not in lines["documentation, disk"]


def test_the_front_has_a_line_for_each_embedding(data: examples.Prepared) -> None:
    said: list[str] = []
    embedding = embed.static_embedding("mine", np.eye(data.words.size, 8, dtype=np.float32))
    evaluate.table_of_the_front(data, [("mine", embedding, None)], said.append, timed=20)
    rows = [line.split(" | ") for line in said[1:]]
    assert [row[0] for row in rows] == [f"| {evaluate.TFIDF}", "| mine"]
    assert all(int(row[1].replace(",", "")) > 0 for row in rows)
