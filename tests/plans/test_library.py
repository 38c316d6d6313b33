"""Does every name of `std:` compile, with the numbers that its comment, its page and its paper give?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from forgeplan.analysis import analyse
from forgeplan.diagnostics.source import Source
from forgeplan.dsl import syntax
from forgeplan.dsl.formatter import format_text
from forgeplan.dsl.library import STD, module_of
from forgeplan.dsl.parser import parse
from tests.house.tree import ROOT
from tests.importer.shapes import count

PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
HOSTS = {"workstation_24gb", "cpu_host"}
"""Clusters without a rate."""

TOTALS = {
    "llama2_7b": (6_738_415_616, None),
    "llama2_13b": (13_015_864_320, None),
    "llama2_70b": (68_976_648_192, None),
    "llama3_8b": (8_030_261_248, None),
    "llama3_70b": (70_553_706_496, None),
    "llama31_8b": (8_030_261_248, None),
    "llama31_70b": (70_553_706_496, None),
    "llama31_405b": (405_853_388_800, None),
    "llama3_405b": (405_853_388_800, None),
    "llama32_1b": (1_235_814_400, None),
    "llama32_3b": (3_212_749_824, None),
    "qwen3_0_6b": (596_049_920, None),
    "qwen3_1_7b": (count(2048, 28, 16, 8, 6144, 151_936, head_dim=128, tied=True, qk_norm=True), None),
    "qwen3_4b": (4_022_468_096, None),
    "qwen3_8b": (8_190_735_360, None),
    "qwen3_14b": (14_768_307_200, None),
    "qwen3_32b": (32_762_123_264, None),
    "mistral_7b": (7_241_732_096, None),
    "mistral_7b_v03": (7_248_023_552, None),
    "mistral_nemo_12b": (12_247_782_400, None),
    "tinyllama_1_1b": (1_100_048_384, None),
    "smollm2_135m": (134_515_008, None),
    "smollm2_360m": (361_821_120, None),
    "smollm2_1_7b": (1_711_376_384, None),
    "mixtral_8x7b": (46_702_792_704, 12_879_925_248),
    "mixtral_8x22b": (140_620_634_112, count(6144, 56, 48, 8, 16_384, 32_000, experts=2) + 56 * 6 * 6144),
    "qwen3_30b_a3b": (30_532_122_624, 3_353_032_704),
    "qwen3_235b_a22b": (
        235_093_634_560,
        count(4096, 94, 64, 4, 1, 151_936, head_dim=128, qk_norm=True, experts=8, expert_ffn=1536) + 94 * 120 * 4096,
    ),
    "deepseek_v3_like": (686_508_605_440, 41_361_961_984),
    "dense_125m": (count(768, 12, 12, 12, 2048, 32_000), None),
    "dense_7b": (8_030_261_248, None),
    "dense_13b": (count(5120, 40, 40, 8, 17_920, 128_256), None),
    "dense_70b": (70_553_706_496, None),
    "debug": (106_816, None),
    "debug_moe": (255_296, 107_840),
}
"""Parameters, and those that a token meets: published totals, or counted by hand. A router is always met whole."""


def declared(module: str) -> dict[str, syntax.Let]:
    parsed = parse(Source(module, (STD / f"{module}.forge").read_text(encoding="utf-8")))
    assert parsed.diagnostics == []
    return {item.name.text: item for item in parsed.file.items if isinstance(item, syntax.Let)}


MODELS, CLUSTERS, RECIPES = (declared(name) for name in ("models", "clusters", "recipes"))


def jobs(module: str, field: str, names: list[str], **others: str) -> dict[str, Any]:
    """The plan of each name, where it stands for `field`; all in one file."""
    usual = {
        "cluster": "h100_node { nodes = 64 }",
        "model": "debug { context = 64Ki tokens }",
        "sources": "{ web = synthetic {} }",
        "batch": "{ accumulation = 1, micro = 1 sequence, length = 32 tokens }",
        "optimizer": "adamw { lr = 1e-3 }",
        "budget": "{ tokens = 10T tokens }",
        "apply": "[recompute]",
        **others,
    }
    lines = ["forge 1", 'from "std:clusters" import h100_node', 'from "std:models" import debug']
    lines += [f'from "std:{module}" import {name}' for name in names if name not in ("h100_node", "debug")]
    for name in names:
        value = f"{name} {{ lr = 1e-3 }}" if field == "optimizer" else name
        fields = {**usual, field: value}
        lines += [f"plan as_{name} {{", *(f"  {key} = {text}" for key, text in fields.items()), "}"]
    found = analyse("library.forge", text="\n".join(lines) + "\n")
    assert [error.message for error in found.errors] == []
    return {name: found.job(f"as_{name}").plan for name in names}


def field_of(value: syntax.Expr) -> str:
    """Which field of a plan a recipe is for."""
    base = value.base.name if isinstance(value, syntax.Amend) and isinstance(value.base, syntax.NameRef) else ""
    tags = {"adamw": "optimizer", "cosine": "schedule", "wsd": "schedule", "cross_entropy": "loss"}
    if base:
        return tags[base]
    assert isinstance(value, syntax.Record)
    keys = {item.path.names[0].text for item in value.items if isinstance(item, syntax.Assign)}
    return next(
        name for key, name in {"params": "precision", "clip": "guard", "every": "checkpoint"}.items() if key in keys
    )


def test_every_model_has_the_parameters_that_are_published() -> None:
    plans = jobs("models", "model", list(MODELS))
    found = {}
    for name, plan in plans.items():
        total = sum(parameter.numel for parameter in plan.model.parameters())
        active = plan.model.num_active_parameters()
        found[name] = (total, active if active != total else None)
    assert found == TOTALS


@pytest.mark.parametrize("name", MODELS)
def test_the_comment_and_the_page_give_the_number_of_parameters(name: str) -> None:
    total, active = TOTALS[name]
    said = [int(number.replace(",", "")) for number in re.findall(r"\d{1,3}(?:,\d{3})+", MODELS[name].doc)]
    if said:
        assert [number for number in said if number > 100_000] == [total, *([active] if active else [])]
    assert re.search(rf"^\| `{name}` \|.*\| {total:,} \| {f'{active:,}' if active else ''} ?\|$", PAGE, re.MULTILINE)


def test_every_cluster_compiles_with_its_facts() -> None:
    plans = jobs("clusters", "cluster", list(CLUSTERS), mesh="{}", precision="{ compute = fp32 }", apply="[]")
    for name, plan in plans.items():
        cluster = plan.cluster
        assert (cluster.bf16 is None) == (name in HOSTS)
        shown = "" if cluster.bf16 is None else f"{cluster.bf16 / 10**12} TFLOP/s"
        memory = "" if cluster.hbm is None else f"{Fraction(cluster.hbm, 2**30)} GiB"
        row = f"| `{name}` | {cluster.devices_per_node} | {cluster.arch} | {memory} | {shown} |"
        assert " ".join(row.split()) in PAGE


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_compiles_and_names_its_source_or_reason(name: str) -> None:
    recipe = RECIPES[name]
    field = field_of(recipe.value)
    others = {"cluster": "{ devices_per_node = 2, arch = cpu }"} if name == "exact_fp64" else {}
    [plan] = jobs("recipes", field, [name], **others).values()
    assert getattr(plan, field) is not None
    assert len(recipe.doc) > 20
    if field in ("optimizer", "schedule", "loss"):
        assert "arXiv" in recipe.doc
    assert f"| `{name}` | {field} |" in PAGE


@pytest.mark.parametrize("path", sorted(STD.glob("*.forge")), ids=lambda path: path.stem)
def test_the_library_is_in_its_one_form_and_documented(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text
    for name, let in declared(path.stem).items():
        assert let.doc, name
        assert module_of(name) == path.stem


def test_no_two_modules_declare_the_same_name() -> None:
    assert not (MODELS.keys() & CLUSTERS.keys() | MODELS.keys() & RECIPES.keys() | CLUSTERS.keys() & RECIPES.keys())
