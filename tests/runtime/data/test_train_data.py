"""Does every sample come once an epoch, whoever reads it and wherever a run was stopped?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.eval_data import EvalData
from forgeplan.runtime.data.microbatch import NOT_COUNTED
from forgeplan.runtime.data.train_data import TrainData
from forgeplan.spec.source.built_in import Synthetic
from forgeplan.spec.source.files import JsonLines, TextFiles, Tokens
from forgeplan.spec.tokenizer.byte import Byte
from tests.runtime.data.plans import held_out, make_plan

LENGTH = 4
WEB = Tokens("web.npy", None, shuffle=True)


def write_samples(folder: Path, num_samples: int, name: str = "web.npy", first: int = 0) -> None:
    """A token file whose sequences each start with another id: sequence i is i, i, i, i."""
    ids = np.repeat(np.arange(first, first + num_samples), LENGTH)
    np.save(folder / name, np.append(ids, ids[-1]).astype(np.uint16))


def ids_of_step(plan: ExecutionPlan, folder: Path, first_sample: int) -> list[int]:
    """First tokens of all sequences of a step, in the order of the line: microbatch by microbatch, rank by rank."""
    per_rank = []
    for rank in range(plan.mesh.data_ranks):
        data = TrainData(plan, data_rank=rank, project=folder, cache=folder / "cache")
        per_rank.append(data.microbatches(first_sample))
        data.close()
    line = []
    for number in range(plan.job.batch.accumulation):
        for rank in range(plan.mesh.data_ranks):
            found = per_rank[rank][number]
            assert found.sample == first_sample + len(line)
            line += found.tokens_BS[:, 0].tolist()
    return line


@st.composite
def legs(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Parts of a run, each with its own (ranks, accumulation, micro, steps)."""
    leg = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
    return draw(st.lists(leg, min_size=1, max_size=4))


@settings(max_examples=40, deadline=None)
@given(st.integers(36, 60), legs(), st.integers(0, 5), st.booleans())
def test_any_ranks_accumulation_microbatch_and_stops_give_the_same_line(num_samples, run, seed, mixed):
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_samples(folder, num_samples)
        write_samples(folder, 40, "books.npy", first=100)
        books = Tokens("books.npy", None, shuffle=True)
        sources = {"web": WEB, "books": books} if mixed else {"web": WEB}
        mixture = {"web": 3, "books": 2} if mixed else None
        seen: list[int] = []
        for ranks, accumulation, micro, steps in run:
            plan = make_plan(
                sources, ranks=ranks, accumulation=accumulation, micro=micro, seed=seed, mixture=mixture, length=LENGTH
            )
            for _ in range(steps):
                seen += ids_of_step(plan, folder, first_sample=len(seen))
        alone = make_plan(sources, seed=seed, mixture=mixture, length=LENGTH)
        data = TrainData(alone, data_rank=0, project=folder, cache=folder / "cache")
        assert seen == [int(data.microbatches(sample)[0].tokens_BS[0, 0]) for sample in range(len(seen))]
        data.close()
        check_epochs([i for i in seen if i < 100], range(num_samples))
        check_epochs([i for i in seen if i >= 100], range(100, 140))


def check_epochs(ids: list[int], all_of_them: range) -> None:
    """Every epoch holds each id once; the last, unfinished one none twice."""
    size = len(all_of_them)
    for start in range(0, len(ids), size):
        epoch = ids[start : start + size]
        assert len(set(epoch)) == len(epoch)
        if len(epoch) == size:
            assert set(epoch) == set(all_of_them)


def line_of(train_data, plan: ExecutionPlan, first: int, count: int) -> list[int]:
    """Ids that one rank sees from sample `first` on."""
    data = train_data(plan)
    per_step = plan.job.batch.micro * plan.job.batch.accumulation
    return [
        token
        for start in range(first, first + count, per_step)
        for micro in data.microbatches(start)
        for token in micro.tokens_BS[:, 0].tolist()
    ]


def test_a_resume_in_a_later_epoch_goes_on_with_that_epochs_order(train_data, tmp_path):
    """Case C059: 125 batches an epoch, stop at step 200, resume."""
    write_samples(tmp_path, 125)
    plan = make_plan({"web": WEB}, length=LENGTH)
    unbroken = line_of(train_data, plan, 0, 250)
    assert line_of(train_data, plan, 200, 50) == unbroken[200:]
    assert sorted(unbroken[125:]) == sorted(unbroken[:125]) == list(range(125))
    assert unbroken[125:] != unbroken[:125]


def test_epochs_after_a_resume_are_whole(train_data, tmp_path):
    """Case C060: 100 samples, stop at 90, resume, run to 300."""
    write_samples(tmp_path, 100)
    plan = make_plan({"web": WEB}, length=LENGTH)
    line = line_of(train_data, plan, 0, 90) + line_of(train_data, plan, 90, 210)
    assert [sorted(line[at : at + 100]) for at in (0, 100, 200)] == [list(range(100))] * 3


def test_ranks_may_change_between_steps(tmp_path):
    """Case C061: 64 samples, global batch 8; 4 ranks to step 3, then 2 to step 5, then 1, then 4."""
    write_samples(tmp_path, 64)
    alone = make_plan({"web": WEB}, micro=8, length=LENGTH)
    reference = [ids_of_step(alone, tmp_path, 8 * step) for step in range(8)]
    seen = []
    for step, ranks in enumerate((4, 4, 4, 2, 2, 1, 4, 4)):
        plan = make_plan({"web": WEB}, ranks=ranks, micro=8 // ranks, length=LENGTH)
        seen.append(ids_of_step(plan, tmp_path, 8 * step))
    assert [sorted(step) for step in seen] == [sorted(step) for step in reference]
    assert sorted(chain.from_iterable(seen)) == list(range(64))


def test_the_microbatch_size_may_change_between_steps(tmp_path):
    """Case C062: global batch 8; micro 4 to step 3, micro 2 after."""
    write_samples(tmp_path, 64)
    four = make_plan({"web": WEB}, micro=4, accumulation=2, length=LENGTH)
    two = make_plan({"web": WEB}, micro=2, accumulation=4, length=LENGTH)
    for step in range(8):
        assert ids_of_step(four, tmp_path, 8 * step) == ids_of_step(two, tmp_path, 8 * step)
    assert fingerprint(four, tmp_path) == fingerprint(two, tmp_path)


def test_a_set_that_does_not_divide_wraps_into_its_next_epoch(tmp_path):
    """Case C063: 10 rows, 3 data ranks, micro 2. Steps hold 6 rows; 5 steps are 3 whole epochs on every rank."""
    write_samples(tmp_path, 10)
    plan = make_plan({"web": WEB}, ranks=3, micro=2, length=LENGTH)
    line = [i for step in range(5) for i in ids_of_step(plan, tmp_path, 6 * step)]
    assert len(line) == 30
    check_epochs(line, range(10))


def test_the_last_accumulation_of_an_epoch_is_as_full_as_any(train_data, tmp_path):
    """Case C070: 10 samples an epoch, 8 a step (accumulation 2 of 4), 4 steps."""
    write_samples(tmp_path, 10)
    data = train_data(make_plan({"web": WEB}, micro=4, accumulation=2, length=LENGTH))
    for step in range(4):
        counted = sum(int((m.labels_BS != NOT_COUNTED).sum()) for m in data.microbatches(8 * step))
        assert counted == 8 * LENGTH


def test_a_rank_that_read_ahead_sees_what_one_that_jumps_sees(train_data, tmp_path):
    write_samples(tmp_path, 30)
    plan = make_plan({"web": WEB}, micro=2, length=LENGTH)
    ahead = train_data(plan)
    in_turn = [ahead.microbatches(start)[0].tokens_BS for start in (0, 2, 4)]
    for start, tokens in zip((4, 0, 2), (in_turn[2], in_turn[0], in_turn[1]), strict=True):
        assert ahead.microbatches(start)[0].tokens_BS.equal(tokens)


def test_labels_are_the_next_tokens(train_data, tmp_path):
    np.save(tmp_path / "web.npy", np.arange(13, dtype=np.int32))
    data = train_data(make_plan({"web": Tokens("web.npy", None, shuffle=False)}, micro=3, length=LENGTH))
    (found,) = data.microbatches(0)
    assert found.tokens_BS.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert found.labels_BS.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert found.positions_BS is None


def test_packed_documents_restart_and_do_not_predict_one_another(train_data, tmp_path):
    # "ab" ends with id 256, then "cde", then "f"; the row is cut after 8 tokens.
    for name, text in (("1.txt", "ab"), ("2.txt", "cde"), ("3.txt", "fg")):
        (tmp_path / name).write_text(text)
    plan = make_plan({"web": TextFiles("*.txt", shuffle=False)}, tokenizer=Byte(), length=8, pack=True)
    (found,) = train_data(plan).microbatches(0)
    a, b, c, d, e, f, g, end = (*b"abcdefg", 256)
    assert found.tokens_BS.tolist() == [[a, b, end, c, d, e, end, f]]
    assert found.labels_BS.tolist() == [[b, end, NOT_COUNTED, d, e, end, NOT_COUNTED, g]]
    assert found.positions_BS.tolist() == [[0, 1, 2, 0, 1, 2, 3, 0]]
    assert found.documents_BS.tolist() == [[0, 0, 0, 1, 1, 1, 1, 2]]


def test_packed_rows_after_a_resume_are_those_of_the_unbroken_run(train_data, tmp_path):
    """Case C067: documents of 3 to 9 tokens packed to 32; stop after 5 steps; resume."""
    lines = [f'{{"text": "{"x" * (2 + i % 7)}"}}\n' for i in range(200)]
    (tmp_path / "web.jsonl").write_text("".join(lines))
    source = JsonLines("web.jsonl", "text", shuffle=True)
    plan = make_plan({"web": source}, tokenizer=Byte(), length=32, micro=2, pack=True)
    unbroken, resumed = train_data(plan), train_data(plan)
    rows = [unbroken.microbatches(2 * step)[0] for step in range(12)]
    for step in range(5, 12):
        (found,) = resumed.microbatches(2 * step)
        for name in ("tokens_BS", "labels_BS", "positions_BS", "documents_BS"):
            assert getattr(found, name).equal(getattr(rows[step], name))
        assert found.documents_BS.max() > 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.fractions("1/20", "2/5", max_denominator=50), st.integers(1, 4))
def test_training_never_sees_a_held_out_document(salt, share, ranks):
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Document i is a letter of three bytes, twice at least: wherever a sequence ends, one of them is whole.
        lines = [f'{{"text": "{chr(0x4E00 + i) * (2 + (i * salt) % 7)}"}}\n' for i in range(120)]
        (folder / "web.jsonl").write_text("".join(lines))
        plan = make_plan(
            {"web": JsonLines("web.jsonl", "text", shuffle=True)},
            tokenizer=Byte(),
            length=8,
            ranks=ranks,
            micro=4,
            evals={"held": held_out("web", share)},
        )
        trained, evaluated = documents_seen(plan, folder)
        assert not trained & evaluated
        # A document of less than a sequence may fall into the tail of its part, which no sequence covers.
        assert len(trained | evaluated) >= 120 - 4


def documents_seen(plan: ExecutionPlan, folder: Path) -> tuple[set[str], set[str]]:
    """Which documents one epoch of training and one evaluation read, by their letter."""
    trained: Counter[str] = Counter()
    evaluated: Counter[str] = Counter()
    ranks = plan.mesh.data_ranks
    for rank in range(ranks):
        train = TrainData(plan, data_rank=rank, project=folder, cache=folder / "cache")
        for first in range(0, train.num_samples, 4 * ranks):
            trained.update(letters(train.microbatches(first)))
        train.close()
        evaluated.update(
            letters(EvalData(plan, "held", data_rank=rank, project=folder, cache=folder / "cache").microbatches())
        )
    return set(trained), set(evaluated)


def letters(microbatches) -> Iterator[str]:
    for found in microbatches:
        for row, labels in zip(found.tokens_BS.tolist(), found.labels_BS.tolist(), strict=True):
            if labels[-1] != NOT_COUNTED:
                ids = bytes(i for i in [*row, labels[-1]] if i < 256)
                yield from ids.decode("utf-8", "ignore")


@settings(max_examples=30, deadline=None)
@given(st.integers(40, 120), st.fractions("1/20", "2/5", max_denominator=30))
def test_training_never_sees_a_held_out_token(num_windows, share):
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "web.npy", np.arange(num_windows * LENGTH + 1, dtype=np.uint16))
        plan = make_plan({"web": WEB}, vocab=1000, length=LENGTH, evals={"held": held_out("web", share)})
        train = TrainData(plan, data_rank=0, project=folder)
        evaluation = EvalData(plan, "held", data_rank=0, project=folder)
        trained = ids_and_labels(m for first in range(train.num_samples) for m in train.microbatches(first))
        evaluated = ids_and_labels(evaluation.microbatches())
        train.close()
        assert not trained & evaluated
        assert trained | evaluated >= set(range(num_windows * LENGTH))


def ids_and_labels(microbatches) -> set[int]:
    return {i for m in microbatches for i in m.tokens_BS.flatten().tolist() + m.labels_BS.flatten().tolist()} - {
        NOT_COUNTED
    }


def fingerprint(plan: ExecutionPlan, folder: Path) -> str:
    data = TrainData(plan, data_rank=0, project=folder, cache=folder / "cache")
    data.close()
    return data.fingerprint()


def test_the_fingerprint_changes_with_whatever_changes_the_order(tmp_path):
    """Case C068 among others: another sequence length is another order."""
    write_samples(tmp_path, 40)
    write_samples(tmp_path, 40, "books.npy")
    books = Tokens("books.npy", None, shuffle=True)
    both = {"web": WEB, "books": books}
    plans = [
        make_plan({"web": WEB}),
        make_plan({"web": WEB}, length=5),
        make_plan({"web": WEB}, seed=1),
        make_plan({"web": attrs.evolve(WEB, shuffle=False)}),
        make_plan({"other": WEB}),
        make_plan({"web": books}),
        make_plan({"web": WEB}, evals={"held": held_out("web", Fraction(1, 10))}),
        make_plan(both, mixture={"web": 1, "books": 1}),
        make_plan(both, mixture={"web": 2, "books": 1}),
        make_plan({"web": WEB}, tokenizer=Byte()),
        make_plan({"web": WEB}, tokenizer=Byte(), pack=True),
    ]
    assert len({fingerprint(plan, tmp_path) for plan in plans}) == len(plans)
    same = make_plan({"web": WEB}, ranks=2, micro=3, accumulation=2, evals={"all": held_out("web", None)})
    assert fingerprint(same, tmp_path) == fingerprint(plans[0], tmp_path)


def test_a_file_rewritten_in_place_is_named_on_resume(train_data, tmp_path):
    write_samples(tmp_path, 40)
    plan = make_plan({"web": WEB})
    recorded = train_data(plan).record()
    train_data(plan).check_unchanged(recorded)
    write_samples(tmp_path, 41)
    with pytest.raises(Refusal) as refused:
        train_data(plan).check_unchanged(recorded)
    assert refused.value.code.id == "FP1018"
    # A .npy header has 128 bytes, an id two.
    assert "source `web`, web.npy" in refused.value.message
    assert f"{128 + 2 * (40 * LENGTH + 1)} bytes" in refused.value.message
    assert f"{128 + 2 * (41 * LENGTH + 1)} bytes" in refused.value.message


def test_another_order_of_the_same_files_is_named_on_resume(train_data, tmp_path):
    """An evaluation turns to the other source, and takes from it what training had."""
    write_samples(tmp_path, 40)
    write_samples(tmp_path, 40, "books.npy")
    both = {"web": WEB, "books": Tokens("books.npy", None, shuffle=True)}

    def data(source: str) -> TrainData:
        held = {"held": held_out(source, Fraction(1, 10))}
        return train_data(make_plan(both, mixture={"web": 1, "books": 1}, evals=held))

    with pytest.raises(Refusal, match="FP1018: held_out of the training data: ") as refused:
        data("books").check_unchanged(data("web").record())
    assert '{"books": "0/1", "web": "1/10"}, and now there is {"books": "1/10", "web": "0/1"}' in refused.value.message


def test_a_source_too_small_for_its_ranks_says_how_many_it_can_feed(train_data, tmp_path):
    write_samples(tmp_path, 7)
    with pytest.raises(Refusal) as refused:
        train_data(make_plan({"web": WEB}, ranks=4, micro=2, length=LENGTH))
    assert refused.value.code.id == "FP0613"
    assert "has 7 sequences" in refused.value.message
    assert "needs 8" in refused.value.message
    assert refused.value.help[0].startswith("at most 3 data ranks")


def test_every_rank_refuses_what_one_refuses_and_none_waits(tmp_path):
    (tmp_path / "web.jsonl").write_text('{"text": "fine"}\n{"text": 3}\n')
    plan = make_plan({"web": JsonLines("web.jsonl", "text", shuffle=True)}, tokenizer=Byte(), ranks=2)
    arrivals = []
    for rank in (0, 1):
        with pytest.raises(Refusal, match="FP0616"):
            TrainData(
                plan,
                data_rank=rank,
                project=tmp_path,
                cache=tmp_path / "cache",
                barrier=lambda r=rank: arrivals.append(r),
            )
    assert arrivals == [0, 1]


def test_rank_0_tokenises_and_the_others_find_it(tmp_path):
    (tmp_path / "web.txt").write_text("some text " * 20)
    plan = make_plan({"web": TextFiles("web.txt", shuffle=True)}, tokenizer=Byte(), ranks=2)
    cache = tmp_path / "cache"
    TrainData(plan, data_rank=0, project=tmp_path, cache=cache).close()
    before = sorted((p, p.stat().st_mtime_ns) for p in cache.rglob("*"))
    TrainData(plan, data_rank=1, project=tmp_path, cache=cache).close()
    assert sorted((p, p.stat().st_mtime_ns) for p in cache.rglob("*")) == before


def test_an_endless_source_needs_no_epochs(train_data):
    data = train_data(make_plan({"web": Synthetic(16, Fraction(0), None)}, micro=2))
    assert data.num_samples is None
    first, second = data.microbatches(0)[0], data.microbatches(2)[0]
    assert not first.tokens_BS.equal(second.tokens_BS)
    assert data.describe() == "web: endless, a counter over 16 states with 0 noise"
