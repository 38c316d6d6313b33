"""How are rotary frequencies stretched beyond the trained context?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import setting

_FACTOR = "stretched length ÷ original length"


@component("rope_scaling", "linear")
@frozen
class Linear:
    """Positions divided by the factor (Chen et al., 2023)."""

    factor: Fraction = setting(t.REAL, _FACTOR, within="[1, 1000000]", example="8")


@component("rope_scaling", "ntk")
@frozen
class Ntk:
    """Dynamic NTK-aware base: theta grows with the sequence beyond `original`."""

    factor: Fraction = setting(t.REAL, _FACTOR, within="[1, 1000000]", example="8")
    original: int = setting(t.TOKEN_COUNT, "context of the unscaled model", within="[1, )", example="4Ki tokens")


@component("rope_scaling", "yarn")
@frozen
class Yarn:
    """YaRN (Peng et al., 2023): interpolation by wavelength, with an attention factor 0.1·ln(factor) + 1."""

    factor: Fraction = setting(t.REAL, _FACTOR, within="[1, 1000000]", example="8")
    original: int = setting(t.TOKEN_COUNT, "context of the unscaled model", within="[1, )", example="4Ki tokens")
    fast: Fraction = setting(t.REAL, "turns above which a frequency is kept", default="32", within="(0, )")
    slow: Fraction = setting(t.REAL, "turns below which a frequency is divided", default="1", within="(0, )")


@component("rope_scaling", "llama3")
@frozen
class Llama3:
    """Llama 3.1's smooth interpolation between low and high wavelengths."""

    factor: Fraction = setting(t.REAL, _FACTOR, within="[1, 1000000]", example="8")
    low: Fraction = setting(t.REAL, "low frequency factor", default="1", within="(0, )")
    high: Fraction = setting(t.REAL, "high frequency factor", default="4", within="(0, )")
    original: int = setting(t.TOKEN_COUNT, "context of the unscaled model", within="[1, )", example="8Ki tokens")
