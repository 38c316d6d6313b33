"""Does a saved model write what it would write in training's own forward, alone or in company?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from attrs import evolve

from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.plan.codec import dumps
from forgeplan.plan.hashes import seal
from forgeplan.runtime.checkpoint.save import Saver
from forgeplan.runtime.data.tokenizer.interface import load_tokenizer
from forgeplan.runtime.executor import build
from forgeplan.runtime.generate import Request, Writer, left_padded
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.sampling import Sampling
from forgeplan.runtime.state import TrainState
from forgeplan.spec.tokenizer.byte import Byte
from tests.runtime import tiny

CPU = torch.device("cpu")
GREEDY = Sampling(temperature=0)


def saved(folder: Path, step: int) -> Path:
    """A checkpoint of a byte model with weights large enough that its answers are not all alike."""
    model = tiny.decoder(vocab=Byte.num_tokens, context=32, init_std=tiny.share("0.4").amount, tie=True)
    plan = tiny.execution_plan(model=model, dtype="fp32", seed=3)
    plan = seal(evolve(plan, job=evolve(plan.job, tokenizer=Byte())))
    bundle = build(plan, CPU)
    tensors = {f"model.{name}": p.detach() for name, p in bundle.model.named_parameters()}
    return Saver(folder, dumps(plan), {}, None, Ranks()).save(tensors, TrainState(step=step))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("run") / "checkpoints", step=5)


@pytest.fixture(scope="module")
def writer(checkpoint: Path) -> Writer:
    return Writer.load(checkpoint, Path(), CPU)


def by_hand(writer: Writer, prompt: list[int], count: int) -> list[int]:
    """Greedy, with a whole forward for every token and no cache."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(writer.model(torch.tensor([ids])).logits_BSV[0, -1].argmax()))
    return ids[len(prompt) :]


def test_greedy_is_the_argmax_of_a_forward_without_cache(writer: Writer) -> None:
    prompt = [100, 101, 102]
    found = [row[0] for row in writer.tokens([prompt], Request(16, GREEDY))]
    assert found == by_hand(writer, prompt, 16)
    assert len(set(found)) > 3, "a model that repeats itself tests little"


def test_prompts_of_different_lengths_do_not_influence_one_another(writer: Writer) -> None:
    prompts = [list(range(60, 60 + n)) for n in (3, 7, 12)]
    together = list(zip(*writer.tokens(prompts, Request(16, GREEDY)), strict=True))
    alone = [tuple(row[0] for row in writer.tokens([p], Request(16, GREEDY))) for p in prompts]
    assert together == alone


def test_padding_changes_no_logits(writer: Writer) -> None:
    rows = [torch.arange(60, 60 + n) for n in (3, 7, 12)]
    tokens, positions, documents = left_padded(rows)
    assert positions[0].tolist() == [0] * 9 + [0, 1, 2]
    with torch.no_grad():
        padded = writer.model(tokens, positions, documents).logits_BSV
        for row, ids in enumerate(rows):
            single = writer.model(ids[None]).logits_BSV[0]
            assert torch.allclose(padded[row, -len(ids) :], single, atol=1e-4, rtol=0)


def test_a_seed_fixes_the_draw_and_another_one_changes_it(writer: Writer) -> None:
    def drawn(seed: int) -> list[str]:
        return writer.write(["ab", "a longer one"], Request(12, Sampling(1.0, top_p=0.9), seed))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_streaming_gives_the_same_text_in_pieces(writer: Writer) -> None:
    request = Request(16, Sampling(1.0), seed=4)
    pieces = list(writer.stream("abc", request))
    assert "".join(pieces) == writer.write(["abc"], request)[0]
    assert len(pieces) > 4


def test_an_answer_ends_before_the_first_stop_text(writer: Writer) -> None:
    whole = writer.write(["abc"], Request(16, GREEDY))[0]
    stop = whole[4:6]
    cut = whole.index(stop)
    stopped = Request(16, GREEDY, stop=("no such text", stop))
    assert writer.write(["abc"], stopped) == [whole[:cut]]
    assert "".join(writer.stream("abc", stopped)) == whole[:cut]


def test_longer_than_the_context_is_refused_with_the_numbers(writer: Writer) -> None:
    message = "FP1020: a prompt of 30 tokens and 10 new ones make 40; the model's context is 32"
    with pytest.raises(Refusal, match=message) as refused:
        list(writer.tokens([[1] * 30], Request(10)))
    assert refused.value.help == ("at most 2 new tokens fit: `--max-new-tokens 2`",)
    assert len(list(writer.tokens([[1] * 30], Request(2, GREEDY)))) == 2


def test_an_empty_prompt_is_the_beginning_of_a_document(writer: Writer) -> None:
    end = load_tokenizer(Byte(), Path()).end_of_document
    assert end is not None
    expected = [row[0] for row in writer.tokens([[end]], Request(8, GREEDY))]
    assert writer.write([""], Request(8, GREEDY)) == [load_tokenizer(Byte(), Path()).decode([t for t in expected if t])]
    with pytest.raises(UsageError, match="no tokens"):
        list(writer.tokens([[]], Request(1)))


@pytest.mark.parametrize("place", ["run directory", "checkpoints", "checkpoint", "renamed"])
def test_a_checkpoint_is_found_from_where_a_person_points(checkpoint: Path, place: str, tmp_path: Path) -> None:
    import shutil

    paths = {"run directory": checkpoint.parents[1], "checkpoints": checkpoint.parent, "checkpoint": checkpoint}
    path = paths.get(place) or Path(shutil.copytree(checkpoint, tmp_path / "mine"))
    assert Writer.load(path, Path(), CPU).step == 5


def test_a_place_without_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"FP1012: .*is no checkpoint and has none"):
        Writer.load(tmp_path, Path(), CPU)
    with pytest.raises(Refusal, match=r"FP1012: .*does not exist"):
        Writer.load(tmp_path / "nowhere", Path(), CPU)


def test_an_answer_of_no_asked_length_takes_what_fits(writer: Writer) -> None:
    assert len(list(writer.tokens([[1] * 30], Request(sampling=GREEDY)))) == 2
    with pytest.raises(Refusal, match="FP1020: a prompt of 32 tokens and 1 new ones make 33"):
        list(writer.tokens([[1] * 32], Request(sampling=GREEDY)))


def test_a_damaged_newest_checkpoint_is_passed_over_and_named(tmp_path: Path) -> None:
    saved(tmp_path, step=5)
    shard = next(saved(tmp_path, step=6).rglob("*.distcp"))
    shard.write_bytes(shard.read_bytes()[:-1])
    told: list[str] = []
    assert Writer.load(tmp_path, Path(), CPU, told.append).step == 5
    assert len(told) == 1
    assert shard.name in told[0]
