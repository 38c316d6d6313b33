"""Do plans survive the way to bytes and back, digit by digit?"""

from __future__ import annotations

import json
from fractions import Fraction

import attrs
import pytest

from forgeplan.compiler import emit
from forgeplan.plan.codec import dumps, loads
from forgeplan.plan.job_codec import Malformed
from forgeplan.plan.verify import read
from tests.compiler.jobs import job, ratio, share, steps, tokens


@pytest.mark.parametrize("amount", [2**63 - 1, 2**63, 2**63 + 1, 2**64])
def test_counts_beyond_64_bits_come_back_unchanged(amount: int) -> None:
    """Case C003."""
    plan = emit(job({"budget.tokens": amount}))
    assert loads(dumps(plan)).job.budget.tokens == amount


def test_a_plan_with_every_kind_of_value_comes_back_equal() -> None:
    plan = emit(
        job(
            {
                "sources": {"web": "tokens", "books": "text", "count": "synthetic"},
                "sources.books.path": "books/*.txt",
                "sources.count.document": 100,
                "tokenizer": "byte",
                "mixture": {"web": share(70), "books": share(Fraction(59, 2)), "count": share(Fraction(1, 2))},
                "optimizer.eps": Fraction(1, 3),
                "apply": {"recompute": 0, "fsdp": 0},
                "apply.fsdp.reshard": 2,
                "checkpoint.every": steps(1000),
                "checkpoint.keep": "all",
                "checkpoint.resume": 40,
                "eval": {"held": 0},
                "eval.held.source": "web",
                "eval.held.split": Fraction(1, 100),
                "eval.held.every": tokens(10**9),
                "model.rope.scaling": "llama3",
                "model.rope.scaling.factor": Fraction(8),
                "model.rope.scaling.original": 4096,
                "guard.clip": None,
                "schedule": None,
            }
        )
    )
    assert read(dumps(plan)) == plan


def test_ratios_and_shares_stay_apart() -> None:
    plan = emit(job({"mixture": {"web": ratio(1)}}))
    assert loads(dumps(plan)).job.mixture == {"web": ratio(1)}
    assert json.loads(dumps(plan))["job"]["mixture"] == {"web": {"amount": 1, "unit": "number"}}


def test_the_bytes_of_a_plan_are_canonical() -> None:
    plan = emit(job())
    assert dumps(loads(dumps(plan))) == dumps(plan)


def test_fractions_are_written_exactly() -> None:
    document = json.loads(dumps(emit(job({"optimizer.lr": Fraction(1, 3)}))))
    assert document["job"]["optimizer"]["lr"] == "1/3"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("job", "model", "layers"), "32", "job.model.layers"),
        (("job", "model", "layers"), True, "job.model.layers"),
        (("job", "model", "mlp"), "swish", "job.model.mlp"),
        (("job", "optimizer", "component"), "sgd", "job.optimizer"),
        (("job", "optimizer", "component"), ["adamw"], "job.optimizer"),
        (("job", "batch", "global", "unit"), {}, "job.batch.global"),
        (("job", "optimizer", "lr"), "1/0", "job.optimizer.lr"),
        (("job", "sources"), [], "job.sources"),
        (("program",), [{"name": "tp"}], "program"),
    ],
)
def test_a_misshapen_part_is_named(path: tuple[str, ...], value: object, expected: str) -> None:
    document = json.loads(dumps(emit(job())))
    record = document
    for name in path[:-1]:
        record = record[name]
    record[path[-1]] = value
    with pytest.raises(Malformed) as error:
        loads(json.dumps(document).encode())
    assert error.value.path == expected


def test_a_missing_field_and_an_unknown_one_are_named() -> None:
    document = json.loads(dumps(emit(job())))
    del document["job"]["batch"]["micro"]
    with pytest.raises(Malformed, match=r"job\.batch\.micro: the field is missing"):
        loads(json.dumps(document).encode())
    document["job"]["batch"] |= {"micro": 1, "macro": 1}
    with pytest.raises(Malformed, match=r"job\.batch\.macro: batch has no such field"):
        loads(json.dumps(document).encode())


def test_evolving_and_sealing_gives_a_plan_that_reads() -> None:
    from forgeplan.plan.hashes import seal

    plan = emit(job({"apply": {"recompute": 0}}))
    shorter = tuple(operation for operation in plan.program if operation.name != "recompute")
    changed = seal(attrs.evolve(plan, program=shorter))
    assert read(dumps(changed)) == changed
    assert changed.meaning != plan.meaning


def test_a_plan_with_stages_float8_and_recomputation_comes_back_equal() -> None:
    plan = emit(
        job(
            {
                "cluster.hbm": None,
                "batch.micro": 1,
                "mesh.pp": 2,
                "apply": {"pp": 0, "fp8": 0, "recompute": 0, "compile": 0, "fsdp": 0},
                "apply.pp.cuts": (30,),
                "apply.fp8.include": ("*.wq",),
                "apply.recompute.only": ("layers.1",),
                "apply.recompute.budget": Fraction(1, 3),
            }
        )
    )
    read_back = loads(dumps(plan))
    assert read_back == plan
    assert read_back.program[1].stages == ((0, 30), (30, 32))
    assert read_back.program[2].layers == tuple(f"layers.{i}.attention.wq" for i in range(32))
    assert read_back.program[3].blocks == ("layers.1",)
