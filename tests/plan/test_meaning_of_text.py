"""Is `plan.hash` a function of what a plan file means, and of nothing else about its text?"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.analysis import analyse
from forgeplan.compiler import emit

STATEMENTS = {
    "seed": ["seed = 17"],
    "cluster": ["cluster.nodes = 1", "cluster.devices_per_node = 4", "cluster.arch = sm90"],
    "model": [
        "model = decoder { layers = 2, dim = 64, heads = 4, vocab = 256, context = 64 tokens }",
        "model.ffn = 128",
    ],
    "sources": ['sources.web = tokens { path = "web/*.npy" }', 'sources.code = tokens { path = "code/*.npy" }'],
    "mixture": ["mixture = { web = 85%, code = 15% }"],
    "batch": ["batch = { accumulation = 2, micro = 2 sequences, length = 32 tokens }"],
    "optimizer": ["optimizer = adamw { lr = 3e-4, betas = [0.9, 0.95] }"],
    "budget": ["budget.steps = 100 steps"],
    "eval": ["eval a { source = web, split = 1%, every = 10 steps }", "eval b { source = code, every = 5 steps }"],
}
CHANGES = [
    ("seed = 17", "seed = 18"),
    ("layers = 2", "layers = 3"),
    ("ffn = 128", "ffn = 129"),
    ("85%, code = 15%", "84%, code = 16%"),
    ("accumulation = 2", "accumulation = 3"),
    ("lr = 3e-4", "lr = 300e-7"),
    ("web/*.npy", "wab/*.npy"),
    ("0.95", "0.950000001"),
    ("steps = 100", "steps = 101"),
    ("sm90", "sm80"),
]
SPELLINGS = [
    ("3e-4", "0.000_3"),
    ("0.95", "95 / 100"),
    ("context = 64 tokens", "context = 2 * 32 tokens"),
    ("split = 1%", "split = 100% / 100"),
    ("2 sequences", "1 sequence + 1 sequence"),
    ("dim = 64", "dim = 16 * 4"),
    ("100 steps", "0.1k steps"),
]


def text_of(statements: list[str], noise: random.Random | None = None) -> str:
    lines = list(statements)
    if noise is not None:
        noise.shuffle(lines)
        lines = [
            noise.choice(["", "\n", "  # a comment\n", "    "]) + line + noise.choice(["", "  # why"]) for line in lines
        ]
        lines = [line.replace(" = ", noise.choice([" = ", "=", "  =  "])) for line in lines]
    return "forge 1\n\nplan example {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"


def hash_of(text: str, file: str = "example.forge") -> str:
    found = analyse(file, text=text)
    assert not found.errors, found.errors
    return emit(found.job("example")).meaning


ALL = [statement for group in STATEMENTS.values() for statement in group]
REFERENCE = hash_of(text_of(ALL))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_order_comments_and_layout_of_the_text_do_not_change_the_hash(seed: int) -> None:
    assert hash_of(text_of(ALL, random.Random(seed))) == REFERENCE


@settings(max_examples=20, deadline=None)
@given(st.sets(st.sampled_from(SPELLINGS), min_size=1))
def test_another_spelling_of_equal_values_does_not_change_the_hash(chosen: set[tuple[str, str]]) -> None:
    text = text_of(ALL)
    for old, new in chosen:
        assert old in text
        text = text.replace(old, new)
    assert hash_of(text) == REFERENCE


@settings(max_examples=30, deadline=None)
@given(st.sets(st.sampled_from(CHANGES), min_size=1))
def test_every_change_of_a_value_changes_the_hash(chosen: set[tuple[str, str]]) -> None:
    text = text_of(ALL)
    for old, new in chosen:
        assert old in text
        text = text.replace(old, new)
    assert hash_of(text) != REFERENCE


def test_name_of_the_file_and_layers_do_not_change_the_hash() -> None:
    base = text_of(ALL).replace("plan example", "plan base")
    child = base + "\nplan example extends base { seed = 17 }\n"
    assert hash_of(child, "other.forge") == REFERENCE
