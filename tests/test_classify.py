"""Classifiers: words, embeddings, heads, models on disk, training and its measures."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused

pytest.importorskip("torch", reason="needs the indexer's packages: pip install '.[indexer]'")
pytest.importorskip("sentence_transformers", reason="needs the indexer's packages: pip install '.[indexer]'")

from crystalperf.indexer import classify, embed, evaluate, examples, heads, modelfile, train, wordvectors
from crystalperf.indexer.evidence import FEATURES, Called, Callees
from crystalperf.indexer.labels.reserve import is_reserved
from crystalperf.indexer.vectors import FunctionText
from crystalperf.indexes.errors import BuildError, InputError
from crystalperf.indexes.resources import resources

pytestmark = pytest.mark.later

TOPICS = {
    "cpu": ("hash compress encode sort", "Computes the checksum of the bytes", "MathUtil"),
    "disk": ("file delete path directory", "Deletes the file at the path", "FileStore"),
    "net": ("socket connect send receive", "Sends the request to the remote peer", "SocketClient"),
}

RESERVED = next(f"a/f{number}.scala" for number in range(99) if is_reserved(f"f{number}.scala"))


def function(resource: str, number: int, doc: bool = True) -> FunctionText:
    words, text, class_name = TOPICS[resource]
    verb = words.split()[number % 4]
    code = f"def {verb}Thing{number}(x) = {{ {words.split()[(number + 1) % 4]}(x); other{verb.title()}(x) }}"
    return FunctionText(
        code, text if doc else "", "scala", f"a.b.{class_name}.{verb}Thing", class_name, "a.b", (f"other{verb}",)
    )


def record(name: str, resource: str, number: int, library: str, doc: bool = True) -> dict[str, object]:
    text = function(resource, number, doc)
    return {
        "id": f"{name}{number}",
        "set": name,
        "library": library,
        "file": f"f{number % 7}-0.scala",
        "language": text.language,
        "qualified_name": text.qualified_name,
        "label": resource,
        "sure": 3,
        "weight": 1.5 if resource == "cpu" else 0.5,
        "code": text.code,
        "doc": text.doc,
        "package": text.package,
        "class_name": text.class_name,
        "callees": list(text.callees),
    }


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        record(name, resource, number, library, doc=number % 3 > 0)
        for name, library, count in (("train", "fs2", 16), ("dev-a", "mine", 8), ("dev-b", "mine", 8))
        for number in range(count)
        for resource in TOPICS
    ]
    rows.append({**record("train", "cpu", 1, "fs2"), "label": "wait"})
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


class HashedEncoder:
    """A sentence encoder that knows nothing: a text's vector comes from its hash."""

    def encode(self, texts: list[str], **_: object) -> np.ndarray:
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        return np.stack([np.random.default_rng(seed).normal(size=24) for seed in seeds]).astype(np.float32)


def hashed_teacher() -> embed.Embedding:
    return embed.Embedding("hashed", HashedEncoder(), 24)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on TOPICS, over an embedding learned from them."""
    folder = tmp_path_factory.mktemp("model")
    corpus = [(f"library{number % 2}", function(resource, number)) for resource in TOPICS for number in range(40)]
    lesson = wordvectors.Lesson(dimensions=16, epochs=2, batch=16, libraries=2)
    words, table = wordvectors.learn_embedding(corpus, hashed_teacher(), lesson, seed=1, report=lambda _: None)
    blank = classify.Head(
        ("code",),
        (("code",),),
        np.zeros((1, words.size), np.float32),
        np.zeros((words.size, 3), np.float32),
        np.zeros((16, 3), np.float32),
        np.zeros(3, np.float32),
    )
    encoder = embed.static_embedding("static", table)
    classifier = classify.PooledClassifier(
        resources(), {"name": "blank"}, words, encoder, blank, blank, None, classify.Pooling.even()
    )
    modelfile.save(folder / "embedding", classifier, table, {})
    train.train(texts, folder / "model", train.Origin(embedding=str(folder / "embedding")), 1, lambda _: None)
    return folder / "model"


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    for each in model.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    return tmp_path


# Words and embeddings


def test_identifiers_are_cut_into_words() -> None:
    words = embed.new_words(["read", "fully", "http", "server", "mk", "dirs"])
    order = sorted(words.tokenizer.get_vocab(), key=words.tokenizer.get_vocab().get)
    ids, starts = words.encode(["readFully(HTTPServer2)", "", "MK_DIRS unseen", "read\u2028Read é"])
    cut = [[order[each] for each in ids[a:b]] for a, b in pairwise(starts)]
    assert cut == [["read", "fully", "http", "server"], [], ["mk", "dirs"], ["read", "read"]]


def test_quantised_vectors_stay_close() -> None:
    table = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    table[0] = 0
    again = embed.dequantise(*embed.quantise(table))
    assert np.abs(again - table).max() <= np.abs(table).max() / 127
    assert not again[0].any()


def test_the_static_embedding_equals_that_of_sentence_transformers() -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    words = embed.new_words(["read", "file", "socket"])
    table = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    table[0] = 0
    embedding = embed.static_embedding("static", table)
    texts = ["readFile", "socket socket read"]
    ours = embedding.encode(texts, *words.encode(texts))
    module = StaticEmbedding(words.tokenizer, embedding_weights=torch.from_numpy(table))
    theirs = SentenceTransformer(modules=[module], device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_text_without_words_has_a_zero_vector() -> None:
    words = embed.new_words(["read"])
    embedding = embed.static_embedding("static", np.ones((2, 4), np.float32))
    assert not embedding.encode(["", "{}"], *words.encode(["", "{}"])).any()


def test_invalid_embedding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with refused(BuildError, tmp_path):
        embed.load_embedding(str(tmp_path))


def test_words_count_by_field_and_rows_have_task_length() -> None:
    words = embed.new_words(["read", "file"])
    functions = [FunctionText("read read file", "", "java", "x.read", None, "", ()), function("cpu", 0)]
    cut = classify.cut_words(functions, words, ("name", "code"))
    rarity = np.ones((2, words.size), np.float32)
    columns, starts, values = classify.count_words(("name", "code"), rarity, cut, 2)
    assert columns[: starts[1]].tolist() == [1, words.size + 1, words.size + 2]
    expected = np.array([1, 1 + np.log(2), 1])
    np.testing.assert_allclose(values[: starts[1]], expected / np.linalg.norm(expected), rtol=1e-6)


def test_a_docstring_is_not_code() -> None:
    text = FunctionText(
        'def f():\n    """Sends it."""\n    return """kept"""', "Sends it.", "python", "f", None, "", ()
    )
    assert classify.FIELDS["code"](text) == 'def f():\n    \n    return """kept"""'


# A trained model


def test_a_trained_model_knows_its_topics(model: Path) -> None:
    classifier = modelfile.load(str(model))
    functions = [function(resource, 31, doc) for resource in TOPICS for doc in (True, False)]
    vectors = classifier.classify(functions)
    assert [classifier.resources[each] for each in vectors.combined.argmax(axis=1)] == [
        resource for resource in TOPICS for _ in range(2)
    ]
    assert np.isnan(vectors.doc).all(axis=1).tolist() == [False, True] * 3
    np.testing.assert_allclose(vectors.combined.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors.code.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors.confidence, vectors.combined.max(axis=1))


def test_a_vector_does_not_depend_on_the_batch(model: Path) -> None:
    classifier = modelfile.load(str(model))
    functions = [function(resource, number, number % 2 > 0) for resource in TOPICS for number in range(5)]
    whole = classifier.classify(functions).combined
    single = np.concatenate([classifier.classify([each]).combined for each in functions])
    np.testing.assert_allclose(whole, single, atol=1e-6)


def test_functions_without_any_known_word_get_a_vector(model: Path) -> None:
    vectors = modelfile.load(str(model)).classify([FunctionText("", "", "cpp", "", None, "", ())])
    assert np.isfinite(vectors.combined).all()


def test_training_moves_functions_of_one_label_closer() -> None:
    corpus = [(f"library{number % 2}", function(resource, number)) for resource in TOPICS for number in range(40)]

    def gap(epochs: int) -> float:
        lesson = wordvectors.Lesson(dimensions=16, libraries=2, epochs=epochs, batch=32, kept=0.0, dropped=0.0)
        words, table = wordvectors.learn_embedding(corpus, hashed_teacher(), lesson, seed=1, report=lambda _: None)
        embedding = embed.static_embedding("static", table)
        code, doc = ([classify.FIELDS[field](function(each, 3)) for each in TOPICS] for field in ("code", "doc"))
        alike = embedding.encode(code, *words.encode(code)) @ embedding.encode(doc, *words.encode(doc)).T
        return float(np.diag(alike).mean() - (alike.sum() - np.trace(alike)) / 6)

    assert gap(3) > gap(0) + 0.1


def test_nothing_to_classify_is_not_an_error(model: Path) -> None:
    assert modelfile.load(str(model)).classify([]).combined.shape == (0, 3)


def test_labels_of_typed_callees_move_a_vector_and_survive_saving(model: Path, tmp_path: Path) -> None:
    plain = modelfile.load(str(model))
    assert plain.callees is None
    weights = np.zeros((len(FEATURES), 3), np.float32)
    weights[FEATURES.index("largest net"), plain.resources.index("net")] = 40.0
    modelfile.save(tmp_path, replace(plain, callees=weights), plain.embedding.table(), {})
    classifier = modelfile.load(str(tmp_path))
    judged = classifier.judge([function("cpu", 31), function("net", 31)])
    called = Called.of({0: Callees((), (1,))}, ["a", "b"])
    alone, together = classifier.vectors(judged), classifier.vectors(judged, lambda: called)
    net = plain.resources.index("net")
    assert together.combined[0, net] > alone.combined[0, net] + 0.1
    np.testing.assert_array_equal(together.combined[1], alone.combined[1])
    np.testing.assert_array_equal(together.code, alone.code)
    np.testing.assert_allclose(together.combined.sum(axis=1), 1, atol=1e-5)


def test_the_explanation_adds_up_to_the_words_logits(model: Path) -> None:
    classifier = modelfile.load(str(model))
    text = function("net", 31, doc=False)
    seen = classify.features(
        classifier.code,
        [text],
        classify.cut_words([text], classifier.words, classifier.code.needs),
        classifier.embedding,
    )
    whole = classify.logits(classifier.code, seen)[0] - seen.embedding[0] @ classifier.code.embedding
    whole = (whole - classifier.code.bias) * classifier.pooling.combined.scale
    parts = classifier.explain(text, top=10**6)
    sums = [sum(logit for _, _, logit in parts[resource]) for resource in classifier.resources]
    np.testing.assert_allclose(sums, whole - whole.mean(), atol=1e-4)
    assert "socket" in {word for _, word, _ in classifier.explain(text, top=4)["net"]}


def test_training_again_gives_the_same_model(model: Path, texts: Path, tmp_path: Path) -> None:
    again = train.train(texts, tmp_path, train.Origin(embedding=str(model)), 1, lambda _: None)
    assert again.identity["hash"] == modelfile.load(str(model)).identity["hash"]


@pytest.mark.parametrize(
    ("share", "sift", "left_out"), [(0.0, "auto", False), (0.3, "auto", True), (0.0, "always", True)]
)
def test_contradicted_labels_are_left_out_where_they_are_many(
    model: Path, texts: Path, tmp_path: Path, share: float, sift: str, left_out: bool
) -> None:
    train.train(texts, tmp_path, train.Origin(embedding=str(model)), 1, lambda _: None, flipped=share, sift=sift)
    trained = json.loads((tmp_path / "config.json").read_text())["trained"]
    assert ("sifted" in trained) == left_out
    if share:
        assert trained["sifted"] < 48


def test_a_sequence_head_needs_something_to_learn_from(texts: Path, tmp_path: Path) -> None:
    with refused(InputError):
        train.train(texts, tmp_path, train.Origin(sequence="learn"), 1, lambda _: None)


def test_no_pickle_and_small(model: Path) -> None:
    assert sorted(each.name for each in model.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]


# Models that are none


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refused(BuildError, tmp_path):
        modelfile.load(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("config.json", b'{"format": 99}'),
        ("config.json", b'{"format": 2}'),
        ("model.safetensors", b""),
        ("model.safetensors", b"\x08\0\0\0\0\0\0\0{}      "),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff"),
    ],
)
def test_a_damaged_model_is_refused_in_one_sentence(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    with refused(BuildError, copy):
        modelfile.load(str(copy))


@pytest.mark.parametrize("what", ["missing", "shape", "nan", "truncated", "foreign vocabulary"])
def test_tensors_that_do_not_fit_are_refused(copy: Path, what: str) -> None:
    from safetensors.numpy import load_file, save_file

    path = copy / "model.safetensors"
    tensors = load_file(path)
    if what == "missing":
        del tensors["doc_bias"]
    elif what == "shape":
        tensors["code_embedding"] = tensors["code_embedding"][:-1].copy()
    elif what == "nan":
        tensors["code_words"][0, 0] = np.nan
    elif what == "foreign vocabulary":
        tensors["embedding"] = tensors["embedding"][:-1].copy()
        tensors["embedding_scale"] = tensors["embedding_scale"][:-1].copy()
    save_file(tensors, path)
    if what == "truncated":
        path.write_bytes(path.read_bytes()[:-5])
    with refused(BuildError, copy):
        modelfile.load(str(copy))


# Training


def test_labels_that_name_no_resource_are_left_out(texts: Path) -> None:
    found = examples.read_examples(texts)
    assert len(found) == 3 * (16 + 8 + 8)
    assert {each.set for each in found} == {"train", "dev-a", "dev-b"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"library": "spark"}, "spark"),
        ({"library": "flink", "set": "dev-flink", "file": RESERVED}, RESERVED),
        ({"weight": "much"}, "line 1"),
        ({"code": None}, "line 1"),
    ],
)
def test_rejects_functions_that_must_not_be_trained_on(
    texts: Path, tmp_path: Path, change: dict[str, object], named: str
) -> None:
    first, rest = texts.read_text(encoding="utf-8").split("\n", 1)
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({**json.loads(first), **change}) + "\n" + rest, encoding="utf-8")
    with refused(InputError, named):
        examples.read_examples(path)


def test_texts_without_a_class_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps(record("train", "cpu", 1, "fs2")) + "\n", encoding="utf-8")
    with refused(InputError):
        examples.read_examples(path)


def test_measures_on_a_case_done_by_hand() -> None:
    probabilities = np.array([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], np.float32)
    one = evaluate.score(probabilities, np.array([0, 1, 1, 2]), np.array([2, 1, 1, 1], np.float32))
    # cpu: precision 2/3, recall 1; disk: precision 1, recall 1/2; net: both 1.
    assert one.accuracy == pytest.approx(0.8)
    assert one.macro_f1 == pytest.approx((0.8 + 2 / 3 + 1) / 3)
    assert one.calibration_error == pytest.approx(0.0, abs=1e-6)
    assert one.brier == pytest.approx((4 * 0.06 + (0.64 + 0.81 + 0.01)) / 5)


def test_folds_keep_files_together(texts: Path, model: Path) -> None:
    classifier = modelfile.load(str(model))
    data = examples.prepare(examples.read_examples(texts), classifier.words, classifier.embedding, [heads.CODE])
    parts = examples.folds(data, data.rows("train"), 3, seed=0)
    files = [{data.examples[row].file for row in part} for part in parts]
    assert sum(map(len, parts)) == 48
    assert not files[0] & files[1]
    assert not files[1] & files[2]


def test_flipped_labels_are_as_many_as_asked_and_all_wrong() -> None:
    labels = np.zeros(10_000, np.int64)
    flipped = train.flip(labels, np.arange(10_000), 0.2, seed=0)
    assert (flipped != 0).mean() == pytest.approx(0.2, abs=0.02)
    assert (flipped == 1).sum() == pytest.approx((flipped == 2).sum(), rel=0.15)


def test_pooling_calibrates_overconfident_heads() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    logits = 4 * np.eye(3, dtype=np.float32)[np.where(rng.random(600) < 0.7, labels, rng.integers(0, 3, 600))]
    ones = np.ones(600, np.float32)
    judged = heads.Judged(np.arange(600), logits, np.full_like(logits, np.nan), np.zeros_like(logits))
    pooling = heads.fit_pooling(judged, labels)
    before = evaluate.score(classify.softmax(logits), labels, ones)
    after = evaluate.score(pooling.combined.probabilities(heads.summed(judged)), labels, ones)
    assert after.calibration_error < 0.03 < before.calibration_error
    assert after.accuracy == before.accuracy


def test_selected_rows_keep_their_words() -> None:
    ids, starts = np.array([1, 2, 3, 4, 5]), np.array([0, 2, 2, 5])
    chosen, new = embed.select((ids, starts), np.array([2, 1, 0]), limit=2)
    assert chosen.tolist() == [3, 4, 1, 2]
    assert new.tolist() == [0, 2, 2, 4]


# The shipped model


def test_shipped_model_is_small_and_complete() -> None:
    folder = Path(str(files("crystalperf.indexer") / "weights"))
    names = ["config.json", "model.safetensors", "sequence.safetensors", "tokenizer.json"]
    assert sorted(each.name for each in folder.iterdir()) == names
    assert sum(each.stat().st_size for each in folder.iterdir()) <= 6_000_000
    classifier = modelfile.load()
    assert classifier.resources == resources()
    assert set(classifier.identity) == {"name", "embedding", "hash"}


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (
            "disk",
            FunctionText(
                "def removeAll(root: File): Unit = { root.listFiles.foreach(removeAll); Files.delete(root.toPath) }",
                "Deletes a directory and all files below it.",
                "scala",
                "acme.io.Cleaner.removeAll",
                "Cleaner",
                "acme.io",
                ("listFiles", "foreach", "removeAll", "delete", "toPath"),
            ),
        ),
        (
            "net",
            FunctionText(
                "def fetch(self, host):\n    self.sock.connect((host, 80))\n    self.sock.sendall(b'x')\n"
                "    return self.sock.recv(1024)",
                "",
                "python",
                "acme.client.Peer.fetch",
                "Peer",
                "acme.client",
                ("connect", "sendall", "recv"),
            ),
        ),
        (
            "cpu",
            FunctionText(
                "static int hash(int[] values) { int h = 1; for (int v : values) h = 31 * h + v; return h; }",
                "Computes the hash code of an array.",
                "java",
                "acme.Arrays.hash",
                "Arrays",
                "acme",
                (),
            ),
        ),
    ],
)
def test_the_shipped_model_knows_plain_cases(expected: str, text: FunctionText) -> None:
    classifier = modelfile.load()
    vectors = classifier.classify([text])
    assert classifier.resources[int(vectors.combined[0].argmax())] == expected
    assert vectors.confidence[0] > 0.6
