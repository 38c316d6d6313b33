"""Is every key a field, and is the right one suggested?"""

from __future__ import annotations

import random

import pytest

from forgeplan.diagnostics.suggest import nearest
from forgeplan.dsl.vocabulary import all_fields
from forgeplan.spec.plan import Plan
from forgeplan.spec.registry import components, kinds
from forgeplan.spec.setting import settings_of
from tests.dsl.plans import at, extended, only


@pytest.mark.parametrize(
    ("body", "place", "helps"),
    [
        ("model.clip = 2", "clip", ["`clip` is a field of `guard`: `guard.clip = …`"]),
        ("optimizer = adamw { lr = 1e-3, clip = 1.0 }", "clip", ["`clip` is a field of `guard`: `guard.clip = …`"]),
        ("model.dp_shard = 2", "dp_shard", ["`dp_shard` is a field of `mesh`: `mesh.dp_shard = …`"]),
        ("mesh = { dp_shrad = 2 }", "dp_shrad", ["did you mean `dp_shard`?"]),
        (
            "batch = { global = 2Mi tokens, mirco = 4 sequences, length = 4Ki tokens }",
            "mirco",
            ["did you mean `micro`?"],
        ),
        ("ssed = 3", "ssed", ["did you mean `seed`?"]),
        ("model.hidden_size = 64", "hidden_size", ["did you mean `dim`?"]),
        ("batch.seq_len = 4Ki tokens", "seq_len", ["did you mean `length`?"]),
        (
            "optimizer.gpus = 4",
            "gpus",
            ["`gpus` is called `devices_per_node` here, a field of `cluster`: `cluster.devices_per_node = …`"],
        ),
        ("evl held_out { source = web, every = 3 steps }", "evl", ["did you mean `eval`?"]),
    ],
)
def test_a_key_in_the_wrong_place_is_an_error_that_names_the_right_one(body: str, place: str, helps: list[str]) -> None:
    """Case C012."""
    loaded = extended(body)
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == ("FP0301", place)
    assert list(fault.help[: len(helps)]) == helps


def test_a_dotted_key_in_the_wrong_place_comes_with_the_edit() -> None:
    loaded = extended("model.clip = 2")
    (fix,) = only(loaded).fixes
    assert [(e.replacement, e.span.end - e.span.start) for e in fix.edits] == [("guard.clip", len("model.clip"))]


def test_what_other_tools_call_a_field_is_a_field_nowhere_and_means_one_field_of_a_record() -> None:
    for block in blocks():
        aliases = [alias for setting in settings_of(block).values() for alias in setting.aliases]
        assert len(aliases) == len(set(aliases))
        assert not set(aliases) & set(all_fields())


def blocks() -> list[type]:
    return [Plan, *(block for kind in kinds() for block in components(kind).values())]


def typos(word: str, rng: random.Random) -> set[str]:
    """One insertion, deletion, replacement and swap each, at random places."""
    letters = "abcdefghijklmnopqrstuvwxyz_"
    i = rng.randrange(len(word))
    j = rng.randrange(len(word) - 1)
    found = {
        word[:i] + rng.choice(letters) + word[i:],
        word[:i] + word[i + 1 :],
        word[:i] + rng.choice(letters) + word[i + 1 :],
        word[:j] + word[j + 1] + word[j] + word[j + 2 :],
    }
    return {t for t in found if t != word and not t[0].isdigit()}


def test_single_slips_of_long_keys_get_the_right_suggestion() -> None:
    """Quality 1 of the language: at least 95 %."""
    rng = random.Random(1)
    right = wrong = 0
    for block in blocks():
        valid = list(settings_of(block))
        for key in valid:
            if len(key) < 4:
                continue
            for typo in {t for _ in range(12) for t in typos(key, rng)} - set(valid):
                if nearest(typo, valid) == key:
                    right += 1
                else:
                    wrong += 1
    assert right + wrong > 1_000
    assert right / (right + wrong) >= 0.95


FULL = """
seed = 3
precision = { params = fp32, compute = bf16, reduce = fp32, moments = bf16 }
mixture = { web = 100% }
batch = { micro = 4 sequences, length = 4Ki tokens, pack = false, global = 2Mi tokens }
optimizer = adamw { lr = 3e-4, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1, decay_embeddings = false }
schedule = cosine { warmup = 3%, floor = 10% }
loss = cross_entropy { z = 1e-4 }
mesh = { dp_replicate = 1, dp_shard = 4 }
apply = [recompute { mode = full }, fsdp { reshard = default }]
checkpoint = { every = 30min, keep = 3, resume = auto }
guard = { clip = 1.0, nonfinite = skip { budget = 10 steps } }
metrics = { every = 10 steps, sinks = [tensorboard] }
eval held_out { source = web, split = 1%, every = 500 steps, batches = 50 }
"""


def test_any_renamed_key_is_an_error_at_that_place() -> None:
    """Quality 1 of the language."""
    import re

    keys = [m for m in re.finditer(r"\b([a-z_]+) = ", FULL) if m[1] not in ("web",)]
    assert len(keys) > 40
    for key in keys:
        name = key[1] + "_zz"
        text = FULL[: key.start()] + name + FULL[key.end(1) :]
        loaded = extended(text)
        hits = [d for d in loaded.diagnostics if d.code == "FP0301" and at(loaded, d) == name]
        assert len(hits) == 1, name
        assert [d.code for d in loaded.diagnostics] == ["FP0301"], (name, loaded.diagnostics)


def test_every_field_of_the_schema_is_known_to_suggestions() -> None:
    assert {"lr", "dp_shard", "reshard", "every", "clip", "global"} <= set(all_fields())
