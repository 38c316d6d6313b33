"""Does text survive the way to ids and back, and is nothing in it mistaken for more than text?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.source.python_source import library_files
from forgeplan.runtime.data.tokenizer.bpe import BpeTokenizer
from forgeplan.runtime.data.tokenizer.byte import ByteTokenizer
from forgeplan.runtime.data.tokenizer.interface import load_tokenizer
from forgeplan.runtime.data.tokenizer.train import train_bpe
from forgeplan.spec.tokenizer.bpe import Bpe
from forgeplan.spec.tokenizer.byte import Byte


@pytest.fixture(scope="module")
def library() -> list[str]:
    return [path.read_text("utf-8") for path in library_files()[:120]]


@pytest.fixture(scope="module")
def bpe(library, tmp_path_factory) -> BpeTokenizer:
    folder = tmp_path_factory.mktemp("bpe")
    assert train_bpe(library, 600, folder / "tokenizer.json") == 600
    return load_tokenizer(Bpe("tokenizer.json"), folder)


@pytest.fixture(params=["byte", "bpe"])
def tokenizer(request):
    return ByteTokenizer() if request.param == "byte" else request.getfixturevalue("bpe")


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_every_text_comes_back(bpe, text):
    for tokenizer in (ByteTokenizer(), bpe):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(0 <= i < tokenizer.num_tokens for i in ids)
        stream = tokenizer.stream()
        assert "".join(map(stream.add, ids)) + stream.end() == text


def test_pieces_give_the_ids_of_the_whole_text(bpe, library):
    for text, ids in zip(library, bpe.encode_documents(library), strict=True):
        assert ids.tolist() == bpe.encode(text)


def test_ids_are_those_of_the_library_itself(bpe, library, tmp_path):
    # The oracle: the tokenizers library on the same file, without any of our code.
    from tokenizers import Tokenizer

    (tmp_path / "tokenizer.json").write_text(bpe._library.to_str())
    oracle = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in library[:20]:
        assert bpe.encode(text) == oracle.encode(text).ids


def test_half_a_character_is_held_back(tokenizer):
    stream = tokenizer.stream()
    shown = [stream.add(i) for i in tokenizer.encode("a€")]
    assert shown[0] == "a"
    assert "".join(shown) == "a€"
    assert "\ufffd" not in "".join(shown)
    cut = tokenizer.stream()
    assert [cut.add(i) for i in tokenizer.encode("€")[:-1]] == [""] * (len(tokenizer.encode("€")) - 1)
    assert set(cut.end()) == {"\ufffd"}


def test_the_name_of_a_special_token_in_a_text_is_text(bpe):
    ids = bpe.encode("before <|endoftext|> after")
    assert bpe.end_of_document not in ids
    assert bpe.decode(ids) == "before <|endoftext|> after"


def test_the_end_of_a_document_has_no_text(tokenizer):
    end = tokenizer.end_of_document
    ids = [*tokenizer.encode("ab"), end, *tokenizer.encode("c")]
    assert tokenizer.decode(ids) == "abc"
    stream = tokenizer.stream()
    assert "".join(map(stream.add, ids)) + stream.end() == "abc"


def test_bytes_are_the_ids_and_256_ends_a_document():
    tokenizer = load_tokenizer(Byte(), None)
    assert tokenizer.encode("aé") == [97, 0xC3, 0xA9]
    assert (tokenizer.num_tokens, tokenizer.end_of_document) == (257, 256)


def test_training_twice_gives_the_same_file(library, tmp_path):
    train_bpe(library[:10], 300, tmp_path / "a.json")
    train_bpe(library[:10], 300, tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_bytes_that_were_never_seen_in_training_survive(tmp_path):
    train_bpe(["only ascii letters"], 300, tmp_path / "t.json")
    tokenizer = load_tokenizer(Bpe("t.json"), tmp_path)
    assert tokenizer.decode(tokenizer.encode("日本 \x00\x7f")) == "日本 \x00\x7f"


def test_a_vocabulary_without_room_for_all_bytes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 257 ids, not 256"):
        train_bpe(["x"], 256, tmp_path / "t.json")


def test_settings_for_batches_and_chance_in_the_file_are_not_for_training(bpe, library, tmp_path):
    described = json.loads(bpe._library.to_str())
    described["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    described["model"]["dropout"] = 0.5
    (tmp_path / "t.json").write_text(json.dumps(described))
    assert load_tokenizer(Bpe("t.json"), tmp_path).encode(library[1]) == bpe.encode(library[1])


def test_what_ends_a_document_is_read_from_the_config_beside_it(tmp_path):
    train_bpe(["some text"], 300, tmp_path / "tokenizer.json")
    described = json.loads((tmp_path / "tokenizer.json").read_text())
    described["added_tokens"] = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    assert load_tokenizer(Bpe("tokenizer.json"), tmp_path).end_of_document is None
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|endoftext|>"}}')
    assert load_tokenizer(Bpe("tokenizer.json"), tmp_path).end_of_document == 0


def test_another_file_has_another_fingerprint(bpe, library, tmp_path):
    train_bpe(library[:5], 300, tmp_path / "other.json")
    assert load_tokenizer(Bpe("other.json"), tmp_path).fingerprint() != bpe.fingerprint()


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read: No such file"), (b"{}", "is not a tokenizer.json")]
)
def test_a_missing_or_foreign_tokenizer_file_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(Refusal, match=f"FP0612.*t.json {said}"):
        load_tokenizer(Bpe("t.json"), tmp_path)


def test_lone_surrogates_from_json_do_not_break_a_run(tokenizer):
    (ids,) = tokenizer.encode_documents(["a\ud800b"])
    assert isinstance(ids, np.ndarray)
    assert tokenizer.decode(ids.tolist())[0] == "a"
