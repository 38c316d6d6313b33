"""Are files read as what they are, and refused with a name and a place otherwise?"""

from __future__ import annotations

import json
import os
from fractions import Fraction

import numpy as np
import pytest

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.source.python_source import library_files
from forgeplan.runtime.data.tokenizer.train import train_bpe
from forgeplan.spec.source.built_in import PythonSource
from forgeplan.spec.source.files import JsonLines, TextFiles, Tokens
from forgeplan.spec.tokenizer.bpe import Bpe
from forgeplan.spec.tokenizer.byte import Byte
from tests.runtime.data.plans import make_plan


def refusal_of(train_data, sources, **options) -> Refusal:
    mixture = dict.fromkeys(sources, 1)
    with pytest.raises(Refusal) as refused:
        train_data(make_plan(sources, mixture=mixture, **options))
    return refused.value


def tokens(path: str, dtype: str | None = None) -> Tokens:
    return Tokens(path, dtype, shuffle=False)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int32", "int64"])
@pytest.mark.parametrize("name", ["web.npy", "web.bin"])
def test_every_dtype_is_read_with_and_without_header(train_data, tmp_path, dtype, name):
    ids = np.arange(200, 213).astype(dtype)
    np.save(tmp_path / name, ids) if name.endswith(".npy") else ids.astype(ids.dtype.newbyteorder("<")).tofile(
        tmp_path / name
    )
    (found,) = train_data(make_plan({"web": tokens(name, dtype)}, micro=3)).microbatches(0)
    assert found.tokens_BS.flatten().tolist() == list(range(200, 212))
    assert found.labels_BS[2].tolist() == [209, 210, 211, 212]


def test_files_follow_one_another_by_name_and_no_sequence_crosses_them(train_data, tmp_path):
    np.save(tmp_path / "b.npy", np.arange(100, 107, dtype=np.uint16))
    np.save(tmp_path / "a.npy", np.arange(11, dtype=np.uint16))
    (found,) = train_data(make_plan({"web": tokens("*.npy")}, micro=3)).microbatches(0)
    assert found.tokens_BS.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [100, 101, 102, 103]]


@pytest.mark.parametrize("num_tokens", [0, 8])
@pytest.mark.parametrize("name", ["short.npy", "short.bin"])
def test_a_file_shorter_than_a_sequence_is_named(train_data, tmp_path, num_tokens, name):
    """Case C071: a window of length 8 needs 9 tokens."""
    ids = np.zeros(num_tokens, np.uint16)
    np.save(tmp_path / name, ids) if name.endswith(".npy") else ids.tofile(tmp_path / name)
    refused = refusal_of(train_data, {"web": tokens(name, "uint16")}, length=8)
    assert refused.code.id == "FP0613"
    assert f"{name} holds {num_tokens} tokens; a sequence of length 8 needs 9" in refused.message


def test_a_file_of_one_sequence_is_one_sample(train_data, tmp_path):
    """Case C071: 9 tokens, length 8."""
    np.save(tmp_path / "nine.npy", np.arange(9, dtype=np.uint16))
    assert train_data(make_plan({"web": tokens("nine.npy")}, length=8)).num_samples == 1


@pytest.mark.parametrize(
    ("content", "dtype", "said"),
    [
        (np.zeros(20, np.uint16), "uint32", "holds uint16, and the plan says dtype = uint32"),
        (np.zeros(20, np.float32), None, "holds float32 of shape 20; token ids are one row of integers"),
        (np.zeros((4, 5), np.uint16), None, "holds uint16 of shape 4 × 5; token ids are one row of integers"),
        (b"\x93NUMPY\x01\x00", None, "is a damaged .npy file"),
        (b"12345678", None, "has no .npy header, and the plan does not say which integers it holds"),
        (b"123456789", "uint16", "has 9 bytes, which is no whole number of uint16 ids of 2 bytes"),
    ],
)
def test_what_a_token_file_holds_is_never_guessed(train_data, tmp_path, content, dtype, said):
    if isinstance(content, bytes):
        (tmp_path / "web.npy").write_bytes(content)
    else:
        np.save(tmp_path / "web.npy", content)
    refused = refusal_of(train_data, {"web": tokens("web.npy", dtype)})
    assert refused.code.id == "FP0606"
    assert f"source `web`: web.npy {said}" in refused.message


@pytest.mark.parametrize(
    ("dtype", "bad", "said"), [("uint16", 300, "id 300"), ("int32", -7, "id -7"), ("uint32", 128_300, "id 128,300")]
)
def test_an_id_outside_the_vocabulary_is_named_with_file_and_offset(train_data, tmp_path, dtype, bad, said):
    np.save(tmp_path / "a.npy", np.zeros(9, dtype))
    ids = np.zeros(9, dtype)
    ids[6] = bad
    np.save(tmp_path / "b.npy", ids)
    data = train_data(make_plan({"web": tokens("*.npy")}, micro=4, vocab=300))
    with pytest.raises(Refusal) as refused:
        data.microbatches(0)
    assert refused.value.code.id == "FP1017"
    assert refused.value.message == f"source `web`, b.npy, token 6: {said}, and model.vocab is 300"


def test_a_pattern_without_a_file_shows_what_is_there(train_data, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.npy").write_bytes(b"")
    refused = refusal_of(train_data, {"web": tokens("data/trian.npy")})
    assert refused.code.id == "FP0612"
    assert "no file matches 'data/trian.npy'" in refused.message
    assert refused.help == (f"{tmp_path / 'data'} holds train.npy",)
    assert "its files are 'data/*'" in refusal_of(train_data, {"web": tokens("data")}).help[0]


def test_a_file_is_read_by_one_source_once(train_data, tmp_path):
    np.save(tmp_path / "01.npy", np.zeros(9, np.uint16))
    refused = refusal_of(train_data, {"a": tokens("*.npy"), "b": tokens("0*.npy")})
    assert (refused.code.id, refused.message) == ("FP0612", "sources `a` and `b` both read 01.npy")
    (tmp_path / "02.npy").symlink_to(tmp_path / "01.npy")
    refused = refusal_of(train_data, {"a": tokens("*.npy")})
    assert refused.message == "source `a` reads one file twice, as 01.npy and as 02.npy"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"text": "cut', "line 3 is not JSON: Unterminated string starting at at column 10"),
        (b'["text"]', "line 3 is not an object but a list"),
        (b'{"body": "x", "id": 1}', "line 3 has no column 'text'; it has body, id"),
        (b'{"text": null}', "line 3: column 'text' is not text but null"),
        (b'{"text": "\xff"}', "line 3 is not UTF-8: byte 0xff at offset 10"),
        (b"[" * 100_000, "line 3 is not JSON: it is nested too deeply"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(train_data, tmp_path, line, said):
    (tmp_path / "web.jsonl").write_bytes(b'{"text": "fine"}\n\n' + line + b'\n{"text": "fine"}\n')
    source = JsonLines("web.jsonl", "text", shuffle=False)
    refused = refusal_of(train_data, {"web": source}, tokenizer=Byte())
    assert refused.code.id == "FP0616"
    assert f"web.jsonl, {said}" in refused.message


def test_each_json_line_is_a_document(train_data, tmp_path):
    (tmp_path / "web.jsonl").write_text('{"body": "ab"}\n{"body": ""}\n{"body": "c\\u00e9"}\n')
    plan = make_plan({"web": JsonLines("web.jsonl", "body", shuffle=False)}, tokenizer=Byte(), length=6)
    (found,) = train_data(plan).microbatches(0)
    assert [*found.tokens_BS[0].tolist(), found.labels_BS[0, -1].item()] == [97, 98, 256, 99, 0xC3, 0xA9, 256]


def test_text_that_is_not_utf8_is_named_with_the_byte(train_data, tmp_path):
    (tmp_path / "web.txt").write_bytes("naïve".encode("latin1"))
    refused = refusal_of(train_data, {"web": TextFiles("web.txt", shuffle=False)}, tokenizer=Byte())
    assert refused.code.id == "FP0616"
    assert "web.txt is not UTF-8: byte 0xef at offset 2" in refused.message


def test_empty_text_is_refused_as_too_little(train_data, tmp_path):
    (tmp_path / "web.txt").write_text("")
    refused = refusal_of(train_data, {"web": TextFiles("web.txt", shuffle=False)}, tokenizer=Byte())
    assert refused.code.id == "FP0613"
    assert "source `web` has 0 sequences of length 4 to train on" in refused.message


def test_a_tokenizer_larger_than_the_vocabulary_is_refused(train_data):
    refused = refusal_of(train_data, {"web": PythonSource(shuffle=True)}, tokenizer=Byte(), vocab=256)
    assert refused.code.id == "FP0609"
    assert refused.message == "the tokenizer has 257 ids, and model.vocab is 256"


def test_packing_needs_to_know_what_ends_a_document(train_data, tmp_path):
    train_bpe(["some text"], 280, tmp_path / "t.json")
    described = json.loads((tmp_path / "t.json").read_text())
    described["added_tokens"] = []
    (tmp_path / "t.json").write_text(json.dumps(described))
    (tmp_path / "web.txt").write_text("some text " * 10)
    source = {"web": TextFiles("web.txt", shuffle=False)}
    refused = refusal_of(train_data, source, tokenizer=Bpe("t.json"), pack=True)
    assert refused.code.id == "FP0611"
    assert "which id ends a document of source `web`: neither `eos_token`" in refused.message
    refused = refusal_of(train_data, source, tokenizer=Bpe("t.json"), vocab=100)
    assert refused.code.id == "FP0609"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_named(train_data, tmp_path):
    (tmp_path / "web.txt").write_text("secret")
    (tmp_path / "web.txt").chmod(0)
    refused = refusal_of(train_data, {"web": TextFiles("web.txt", shuffle=False)}, tokenizer=Byte())
    assert refused.message == "source `web`: web.txt cannot be read: Permission denied"


def test_the_library_is_read_whole_in_order_and_without_tests(train_data):
    files = library_files()
    names = [path.name for path in files]
    assert {"argparse.py", "ast.py", "decoder.py", "selectors.py"} <= set(names)
    assert not any({"test", "tests", "site-packages"} & set(path.parts[-3:-1]) for path in files)
    data = train_data(make_plan({"web": PythonSource(shuffle=False)}, tokenizer=Byte(), length=64))
    first = data.microbatches(0)[0].tokens_BS[0].tolist()
    assert bytes(first) == next(path for path in files if path.stat().st_size).read_bytes()[:64]


def test_a_share_of_weights_decides_which_source_a_sample_is_from(train_data, tmp_path):
    np.save(tmp_path / "a.npy", np.full(41, 1, np.uint16))
    np.save(tmp_path / "b.npy", np.full(41, 2, np.uint16))
    sources = {"a": tokens("a.npy"), "b": tokens("b.npy"), "never": tokens("missing.npy")}
    mixture = {"a": Fraction(3, 4), "b": Fraction(1, 4), "never": Fraction(0)}
    data = train_data(make_plan(sources, micro=8, mixture=mixture))
    firsts = data.microbatches(0)[0].tokens_BS[:, 0].tolist()
    assert (firsts.count(1), firsts.count(2)) == (6, 2)
