"""Does an evaluation read what it should, equally often on every rank?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.microbatch import NOT_COUNTED
from forgeplan.spec.source.built_in import Synthetic
from forgeplan.spec.source.files import TextFiles, Tokens
from forgeplan.spec.tokenizer.byte import Byte
from tests.runtime.data.plans import held_out, make_plan

WEB = Tokens("web.npy", None, shuffle=True)


@pytest.fixture
def ten_windows(tmp_path):
    np.save(tmp_path / "web.npy", np.arange(41, dtype=np.uint16))


@pytest.mark.usefixtures("ten_windows")
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_ranks_together_read_every_sequence_once_and_equally_many_microbatches(eval_data, ranks):
    plan = make_plan({"web": WEB}, ranks=ranks, micro=3, evals={"all": held_out("web", None)})
    per_rank = [list(eval_data(plan, "all", rank).microbatches()) for rank in range(ranks)]
    assert {len(found) for found in per_rank} == {math.ceil(4 / ranks)}
    labels = torch.cat([m.labels_BS.flatten() for found in per_rank for m in found])
    assert sorted(labels[labels != NOT_COUNTED].tolist()) == list(range(1, 41))
    assert all(m.tokens_BS.shape == (3, 4) for found in per_rank for m in found)
    assert all(int(m.tokens_BS.min()) >= 0 for found in per_rank for m in found)


@pytest.mark.usefixtures("ten_windows")
def test_an_evaluation_is_the_same_whenever_it_is_made(eval_data):
    data = eval_data(make_plan({"web": WEB}, micro=2, evals={"all": held_out("web", None)}), "all")
    once, again = list(data.microbatches()), list(data.microbatches())
    assert all(a.tokens_BS.equal(b.tokens_BS) for a, b in zip(once, again, strict=True))
    assert once[0].tokens_BS.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.usefixtures("ten_windows")
def test_batches_counts_microbatches_over_all_ranks(eval_data):
    plan = make_plan({"web": WEB}, ranks=2, micro=2, evals={"some": held_out("web", None, batches=3)})
    labels = [m.labels_BS for rank in (0, 1) for m in eval_data(plan, "some", rank).microbatches()]
    assert len(labels) == 4
    assert sum(int((label != NOT_COUNTED).sum()) for label in labels) == 3 * 2 * 4


@pytest.mark.usefixtures("ten_windows")
@pytest.mark.parametrize(
    ("block", "said"),
    [
        (held_out("web", None, batches=6), "gives 5 microbatches of 2 sequences; batches = 6"),
        (held_out("web", Fraction(1, 10), batches=2), "gives 1 microbatch of 2 sequences; batches = 2"),
        (held_out("endless", None), "is endless, and batches = all"),
    ],
)
def test_too_little_to_evaluate_on_is_refused_with_what_there_is(eval_data, block, said):
    sources = {"web": WEB, "endless": Synthetic(16, Fraction(0), None)}
    with pytest.raises(Refusal) as refused:
        eval_data(make_plan(sources, micro=2, mixture={"web": 1}, evals={"e": block}), "e")
    assert refused.value.code.id == "FP0618"
    assert said in refused.value.message


def test_a_split_without_a_document_is_refused(eval_data, tmp_path):
    (tmp_path / "one.txt").write_text("only one document " * 10)
    plan = make_plan(
        {"web": TextFiles("one.txt", shuffle=True)}, tokenizer=Byte(), evals={"e": held_out("web", Fraction(1, 10**6))}
    )
    with pytest.raises(Refusal, match=r"FP0618: eval e: .* its split of 0.0001% holds no sequence of length 4") as told:
        eval_data(plan, "e")
    assert "documents are held out whole" in told.value.help[0]


def test_unigram_entropy_is_that_of_the_counted_labels(eval_data, tmp_path):
    # Labels are 1, 1, 1, 2: three quarters and one quarter, over two ranks.
    np.save(tmp_path / "web.npy", np.array([0, 1, 1, 1, 2], np.uint8))
    plan = make_plan({"web": WEB}, ranks=2, length=2, evals={"all": held_out("web", None)})
    expected = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    for rank in (0, 1):
        assert eval_data(plan, "all", rank).unigram_entropy() == pytest.approx(expected, rel=1e-12)
