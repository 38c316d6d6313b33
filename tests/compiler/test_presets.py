"""Have the models of `std:models` the parameters of what they are named after?"""

from __future__ import annotations

import pytest

from forgeplan.analysis import analyse

PUBLISHED = {
    "llama2_7b": 6_738_415_616,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama3_405b": 405_853_388_800,
    "llama32_1b": 1_235_814_400,
    "llama32_3b": 3_212_749_824,
    "qwen3_0_6b": 596_049_920,
    "mixtral_8x7b": 46_702_792_704,
    "qwen3_30b_a3b": 30_532_122_624,
}


ACTIVE = {"mixtral_8x7b": 12_879_925_248, "qwen3_30b_a3b": 3_353_032_704}


def debug_moe(experts: int) -> int:
    """The published TINY of case C029, with experts of width 64 and a router in place of each of the two MLPs."""
    return 106_816 + 2 * (experts * 3 * 64 * 64 + 8 * 64 - 3 * 64 * 128)


def deepseek_v3_like(experts: int, modules: int) -> int:
    """From the numbers of the report, part by part, with so many experts a layer and modules that predict further."""
    dim, expert = 7168, 3 * 7168 * 2048
    attention = 2 * dim * 128 * 128 + 2 * dim * 8 * 128
    dense = attention + 2 * dim + 3 * dim * 18_432
    sparse = attention + 2 * dim + experts * expert + 256 * dim
    one_further = sparse + 2 * dim * dim + 3 * dim
    return 2 * 129_280 * dim + dim + 3 * dense + 58 * sparse + modules * one_further


COUNTED = {"debug_moe": debug_moe(8), "deepseek_v3_like": deepseek_v3_like(257, 1)}
ACTIVE |= {"debug_moe": debug_moe(2), "deepseek_v3_like": deepseek_v3_like(9, 0)}


@pytest.mark.parametrize(("preset", "parameters"), (PUBLISHED | COUNTED).items(), ids=[*PUBLISHED, *COUNTED])
def test_a_preset_has_the_parameters_of_its_shape(preset: str, parameters: int) -> None:
    text = f"""forge 1
from "std:clusters" import h200_node
from "std:models" import {preset}
plan example {{
  cluster   = h200_node {{ nodes = 64 }}
  model     = {preset} {{}}
  sources   = {{ count = synthetic {{}} }}
  batch     = {{ accumulation = 1, micro = 1 sequence, length = 32 tokens }}
  optimizer = adamw {{ lr = 3e-4 }}
  budget    = {{ steps = 10 steps }}
  assert model.params == {parameters}
  assert model.active_params == {ACTIVE.get(preset, parameters)}
}}
"""
    found = analyse("example.forge", text=text)
    assert not found.errors
    assert found.job("example").derived["model.params"] == parameters
