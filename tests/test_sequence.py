"""The sequence head: what it reads, that it learns, that its answers are a function's own, and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused

pytest.importorskip("torch", reason="needs the indexer's packages: pip install '.[indexer]'")
pytest.importorskip("sentence_transformers", reason="needs the indexer's packages: pip install '.[indexer]'")

from crystalperf.indexer import classify, distil, embed, examples, heads, modelfile, sequence, teacher, train
from crystalperf.indexer.vectors import FunctionText
from crystalperf.indexes.errors import BuildError, InputError
from crystalperf.indexes.resources import resources

pytestmark = pytest.mark.later

WORDS = embed.new_words(["open", "close", "file", "socket", "hash", "a", "b", "c", "d", "e"])
TABLE = np.random.default_rng(0).normal(size=(WORDS.size, 24)).astype(np.float32)
TABLE[0] = 0


def function(code: str, doc: str = "", name: str = "f") -> FunctionText:
    return FunctionText(code, doc, "java", f"a.B.{name}", "B", "a", ())


def cut(functions: list[FunctionText]) -> classify.Cut:
    return classify.cut_words(functions, WORDS, tuple(sequence.LIMITS))


def named(ids: np.ndarray) -> list[str]:
    order = sorted(WORDS.tokenizer.get_vocab(), key=WORDS.tokenizer.get_vocab().get)
    return [order[each] for each in ids]


def trained(seed: int = 0) -> tuple[sequence.SequenceHead, sequence.Sequences, np.ndarray]:
    """A head that distinguishes `open` before `close` from `close` before `open`: the words are the same."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(240):
        filler = " ".join(rng.choice(["a", "b", "c", "d", "e"], 6))
        pair = ("open file close", "close file open", "hash file hash")[number % 3]
        texts.append(function(f"{filler} {pair} {filler}"))
        labels.append(number % 3)
    targets = np.eye(3, dtype=np.float32)[labels]
    plan = sequence.Schooling(width=16, epochs=12, batch=16, rate=5e-3, warm_up=10)
    read = sequence.sequences(cut(texts))
    return sequence.learn(read, TABLE, targets, plan, seed, lambda _: None), read, np.array(labels)


def test_fields_are_read_one_after_the_other_each_to_its_limit() -> None:
    long = " ".join(["hash"] * 300)
    texts = sequence.sequences(cut([function(long, "close a", "openFile"), function("", "", "x"), function("b")]))
    first = slice(texts.starts[0], texts.starts[1])
    assert named(texts.ids[first])[:6] == ["open", "file", "b", "a", "close", "a"]
    assert texts.lengths.tolist() == [2 + 1 + 1 + 2 + sequence.LIMITS["code"], 2, 3]
    assert texts.fields[first][:6].tolist() == [0, 0, 1, 2, 3, 3]
    assert texts.places[first][:6].tolist() == [0, 1, 0, 0, 0, 1]
    some = sequence.sequences(cut([function("hash b")]))
    assert named(some.ids)[-2:] == ["hash", "b"]


def test_it_learns_the_order_of_words() -> None:
    head, texts, labels = trained()
    assert (sequence.read(head, TABLE, texts).argmax(axis=1) == labels).mean() > 0.95


def test_answer_does_not_depend_on_the_other_functions_of_its_batch() -> None:
    """To the last bit: what a build keeps of a function must be what the next one would compute."""
    head, _, _ = trained()
    rng = np.random.default_rng(1)
    functions = [function(" ".join(rng.choice(["open", "hash", "a", "b"], size))) for size in range(1, 140)]
    whole = sequence.read(head, TABLE, sequence.sequences(cut(functions)))
    for some in (functions[:1], functions[5:9], functions[::-1]):
        alone = sequence.read(head, TABLE, sequence.sequences(cut(some)))
        np.testing.assert_array_equal(alone, whole[[functions.index(each) for each in some]])


def test_function_without_words_gets_an_answer_and_no_functions_give_none() -> None:
    head, _, _ = trained()
    blank = FunctionText("", "", "cpp", "", None, "", ())
    assert np.isfinite(sequence.read(head, TABLE, sequence.sequences(cut([blank])))).all()
    assert sequence.read(head, TABLE, sequence.sequences(cut([]))).shape == (0, 3)


def test_learning_again_gives_the_same_weights() -> None:
    first, second = trained()[0], trained()[0]
    for name, values in vars(first).items():
        np.testing.assert_array_equal(values, getattr(second, name))


# The teacher


@pytest.fixture
def tuned() -> teacher.Tuned:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    shape = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    return teacher.Tuned(transformers.BertModel(shape), 16, 3)


def test_an_encoder_learns_which_token_makes_a_label(tuned: teacher.Tuned) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    texts = [[*rng.integers(10, 40, rng.integers(1, 9)).tolist(), int(label)] for label in labels]
    said: list[str] = []
    teacher.teach(tuned, texts, labels, teacher.Training(epochs=12, rate=3e-3, head_rate=3e-3), said.append)
    assert len(said) == 12
    assert (teacher.read_tokens(tuned, texts).argmax(axis=1) == labels).mean() > 0.95


def test_padding_of_a_text_changes_nothing(tuned: teacher.Tuned) -> None:
    texts = [[5, 6], [7, 8, 9, 10, 11, 12, 13], [14]]
    together = teacher.read_tokens(tuned, texts)
    alone = np.concatenate([teacher.read_tokens(tuned, [text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_the_text_of_an_encoder_begins_with_names() -> None:
    text = teacher.as_text(
        FunctionText("int readFully() {}", "Reads all.", "java", "a.B.readFully", "B", "x.y", ("f",))
    )
    assert text == "read Fully of B in y. Reads all. calls f : int read Fully() {}"


# Learning from a teacher


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sentence-transformers model of one layer that has learned nothing yet."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    vocabulary = ["[PAD]", "[UNK]", "open", "close", "file", "socket", "hash", "calls", "of", "in", "a", "b"]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(vocabulary), **sizes)).save_pretrained(folder)
    layers = Transformer(str(folder))
    target = tmp_path_factory.mktemp("sentences")
    SentenceTransformer(modules=[layers, Pooling(32)]).save(str(target))
    return str(target)


CODE = {"cpu": "hash(a); hash(b)", "disk": "open(file); close(file)", "net": "open(socket); close(socket)"}


@pytest.fixture(scope="module")
def data() -> examples.Prepared:
    rows = [
        examples.Example(function(f"{CODE[resource]} {'a ' * number}"), at, name, "l", f"f{number % 5}", 1.0)
        for name, count in (("train", 60), ("dev-a", 5))
        for number in range(count)
        for at, resource in enumerate(resources())
    ]
    return examples.prepare(rows, WORDS, embed.static_embedding("static", TABLE), (heads.CODE, heads.DOC))


def test_embeddings_of_unlabelled_functions_are_learned(data: examples.Prepared, encoder: str) -> None:
    rows = data.rows("train")
    both = heads.train_heads(data, rows, data.labels)
    others = [("m", function(f"{code} {'b ' * number}")) for code in CODE.values() for number in range(80)]
    said: list[str] = []
    head, taught = distil.distil(
        distil.RerunCorrection(data, rows, data.labels, both, embed.static_embedding("static", TABLE)),
        others,
        encoder,
        0,
        said.append,
        distil.Distillation(functions=120),
        sequence.Schooling(width=16, epochs=8, rate=5e-3, warm_up=10),
    )
    assert said
    development = data.rows("dev-a")
    answers = examples.with_sequence(data, head, embed.static_embedding("static", TABLE)).sequence[development]
    assert (answers.argmax(axis=1) == data.labels[development]).mean() > 0.9
    assert taught.read([data.examples[row].function for row in development]).shape == (len(development), 3)


def test_half_of_the_distilled_functions_are_uncertain_and_libraries_are_balanced() -> None:
    rng = np.random.default_rng(0)
    sure = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 4000)]
    unsure = np.full((4000, 3), 1 / 3, np.float32)
    libraries = ["large" if number % 10 else "small" for number in range(8000)]
    chosen = distil.choose(np.concatenate([sure, unsure]), libraries, distil.Distillation(functions=600), seed=0)
    assert len(set(chosen)) == len(chosen) == 600
    assert (chosen >= 4000).sum() == 300
    small = np.mean([libraries[each] == "small" for each in chosen])
    assert 0.15 < small < 0.35  # a tenth of all functions; a quarter by the square root


def test_model_without_layers_is_not_a_teacher(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    SentenceTransformer(modules=[StaticEmbedding(WORDS.tokenizer, embedding_dim=8)]).save(str(tmp_path))
    with refused(InputError, tmp_path):
        teacher.fine_tune(str(tmp_path), [function("a")], np.zeros(1, np.int64), 3, 0, lambda _: None)


# As a file


@pytest.fixture
def folder(data: examples.Prepared, tmp_path: Path) -> Path:
    """A model with a sequence head."""
    embedding = embed.static_embedding("static", TABLE)
    both = heads.train_heads(data, data.rows("train"), data.labels)
    judged = heads.judge(both, data, data.rows("dev-a"))
    pooling = heads.fit_pooling(judged, data.labels[judged.rows])
    model = classify.PooledClassifier(resources(), {"name": "m"}, WORDS, embedding, *both, trained()[0], pooling)
    modelfile.save(tmp_path, model, TABLE, {})
    return tmp_path


def test_saved_head_gives_the_same_answers(folder: Path) -> None:
    head, texts, _ = trained()
    again = modelfile.load(str(folder))
    assert again.sequence is not None
    np.testing.assert_array_equal(sequence.read(again.sequence, TABLE, texts), sequence.read(head, TABLE, texts))
    with_it = again.judge([function("open file close")])
    assert with_it.shape == (1, 9)
    assert with_it[0, 6:].any()


@pytest.mark.parametrize("what", ["missing", "shape", "nan", "truncated", "gone"])
def test_a_damaged_head_is_refused(folder: Path, what: str) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / modelfile.SEQUENCE
    tensors = load_file(path)
    if what == "missing":
        del tensors["mixing"]
    elif what == "shape":
        tensors["output"] = tensors["output"][:, :-1].copy()
    elif what == "nan":
        tensors["field"][0, 0] = np.nan
    save_file(tensors, path)
    if what == "truncated":
        path.write_bytes(path.read_bytes()[:-5])
    elif what == "gone":
        path.unlink()
    with refused(BuildError):
        modelfile.load(str(folder))


def test_other_sequence_head_changes_the_model_hash(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    before = modelfile.load(str(folder)).identity["hash"]
    tensors = load_file(folder / modelfile.SEQUENCE)
    tensors["bias"] = tensors["bias"] + np.float16(1)
    save_file(tensors, folder / modelfile.SEQUENCE)
    assert modelfile.load(str(folder)).identity["hash"] != before


def test_keeping_a_missing_sequence_head_is_refused(tmp_path: Path) -> None:
    with refused(InputError):
        train.kept_sequence(train.Origin(sequence="keep"))


def test_a_kept_sequence_head_is_the_earlier_one(folder: Path) -> None:
    kept = train.kept_sequence(train.Origin(embedding=str(folder), sequence="keep"))
    np.testing.assert_array_equal(kept.mixing, trained()[0].mixing)
