"""Is text tokenised once, and never half?"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.cache import ABANDONED_SECONDS, cache_folders, tokenised
from forgeplan.runtime.data.tokenizer.byte import ByteTokenizer


class Counting(ByteTokenizer):
    """Says how many documents it was given; with `fail_at`, the disk is full at that one, once."""

    def __init__(self, fail_at: int | None = None, num_tokens: int = 257) -> None:
        self.seen = 0
        self.fail_at = fail_at
        self.num_tokens = num_tokens

    def encode_documents(self, texts):
        for ids in super().encode_documents(texts):
            if self.seen == self.fail_at:
                self.fail_at = None
                raise OSError(28, "No space left on device")
            self.seen += 1
            yield ids


def texts():
    return iter(["ab", "", "c", "ab"])


def test_documents_lie_in_a_row_each_with_its_end_and_equal_ones_with_equal_hashes(tmp_path):
    found = tokenised(texts, "digest", ByteTokenizer(), (tmp_path,))
    assert found.tokens.tolist() == [97, 98, 256, 99, 256, 97, 98, 256]
    assert found.ends.tolist() == [3, 5, 8]
    assert found.hashes[0] == found.hashes[2] != found.hashes[1]


def test_the_second_time_nothing_is_tokenised(tmp_path):
    first, second = Counting(), Counting()
    made = tokenised(texts, "digest", first, (tmp_path,))
    found = tokenised(texts, "digest", second, (tmp_path,))
    assert (first.seen, second.seen) == (3, 0)
    assert np.array_equal(made.tokens, found.tokens)


def test_other_content_and_another_tokenizer_have_entries_of_their_own(tmp_path):
    class Other(Counting):
        def fingerprint(self) -> str:
            return "other"

    tokenised(texts, "digest", Counting(), (tmp_path,))
    for digest, tokenizer in (("other digest", Counting()), ("digest", Other())):
        tokenised(texts, digest, tokenizer, (tmp_path,))
        assert tokenizer.seen == 3


def test_a_damaged_entry_is_made_again(tmp_path):
    tokenised(texts, "digest", Counting(), (tmp_path,))
    for name, damage in (("tokens.bin", b"xx"), ("entry.json", b"{"), ("documents.npy", b"")):
        next(tmp_path.glob(f"*/{name}")).write_bytes(damage)
        tokenizer = Counting()
        assert tokenised(texts, "digest", tokenizer, (tmp_path,)).ends.tolist() == [3, 5, 8]
        assert tokenizer.seen == 3


@pytest.mark.parametrize(("num_tokens", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_get_the_smallest_type_that_holds_the_largest(tmp_path, num_tokens, dtype):
    """Case C066: 65,536 ids fit 16 bits, one more does not."""
    assert tokenised(texts, "digest", Counting(num_tokens=num_tokens), (tmp_path,)).tokens.dtype == dtype


def test_a_full_disk_leaves_nothing_behind_and_the_next_folder_is_tried(tmp_path):
    full, spare = tmp_path / "full", tmp_path / "spare"
    assert tokenised(texts, "digest", Counting(fail_at=1), (full, spare)).ends.tolist() == [3, 5, 8]
    assert list(full.iterdir()) == []


def test_without_a_folder_that_can_be_written_the_run_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match=r"FP0612: tokenised text cannot be kept in .*file") as refused:
        tokenised(texts, "digest", Counting(), (tmp_path / "file",))
    assert "XDG_CACHE_HOME" in refused.value.help[0]


def test_what_a_killed_process_left_goes_after_a_day(tmp_path):
    tokenised(texts, "digest", Counting(), (tmp_path,))
    (entry,) = tmp_path.iterdir()
    old, young = tmp_path / f"{entry.name}.old", tmp_path / f"{entry.name}.young"
    for folder in (old, young):
        folder.mkdir()
    os.utime(old, (time.time() - 2 * ABANDONED_SECONDS,) * 2)
    (entry / "entry.json").unlink()
    tokenised(texts, "digest", Counting(), (tmp_path,))
    assert {p.name for p in tmp_path.iterdir()} == {entry.name, young.name}


def test_the_user_cache_comes_first_and_the_project_after(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    project = Path("project")
    assert cache_folders(project) == (
        tmp_path / "xdg" / "forgeplan" / "tokens",
        project / ".forgeplan" / "cache" / "tokens",
    )
