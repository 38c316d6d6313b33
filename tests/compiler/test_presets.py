"""Have the models of `std:models` the parameters of the published ones?"""

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
}


@pytest.mark.parametrize(("preset", "parameters"), PUBLISHED.items(), ids=PUBLISHED)
def test_a_preset_has_its_published_number_of_parameters(preset: str, parameters: int) -> None:
    text = f"""forge 1
from "std:clusters" import h200_node
from "std:models" import {preset}
plan example {{
  cluster   = h200_node {{ nodes = 64 }}
  model     = {preset} {{}}
  sources   = {{ count = synthetic {{}} }}
  batch     = {{ accumulation = 1, micro = 1 sequence, length = 1Ki tokens }}
  optimizer = adamw {{ lr = 3e-4 }}
  budget    = {{ steps = 10 steps }}
  assert model.params == {parameters}
}}
"""
    found = analyse("example.forge", text=text)
    assert not found.errors
    assert found.job("example").derived["model.params"] == parameters
