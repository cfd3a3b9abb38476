"""Rotary position embedding in the half-split layout of Hugging Face's Llama.

Source: Su et al., RoFormer (arXiv 2104.09864); scalings as in Llama 3.1's release and YaRN
(Peng et al., arXiv 2309.00071). Knows no cache: keys are stored before rotation, so the position
of a key is chosen by whoever reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import torch

from backend.config import ModelConfig


def inverse_frequencies(config: ModelConfig) -> tuple[torch.Tensor, float]:
    """Inverse frequencies [rotated channels / 2] in float32, and the factor on cos and sin (1 but
    for YaRN)."""
    width = config.rotated_channels
    half = torch.arange(0, width, 2, dtype=torch.float32) / width
    plain = config.rope_theta**-half
    scaling = config.rope_scaling
    if scaling is None:
        return plain, 1.0
    kind = scaling["rope_type"]
    if kind == "linear":
        return plain / _number(scaling, "factor"), 1.0
    if kind == "factors":
        return plain / torch.tensor(cast("tuple[float, ...]", scaling["factors"])), 1.0
    if kind == "llama3":
        return _llama3(plain, scaling), 1.0
    return _yarn(config, plain, scaling)


class Rope:
    """cos and sin tables that grow as longer positions are asked for."""

    def __init__(self, config: ModelConfig, device: torch.device | str = "cpu") -> None:
        frequencies, self._factor = inverse_frequencies(config)
        self._frequencies = frequencies.to(device)
        self._cos = torch.empty(0)
        self._sin = torch.empty(0)
        self._extend(1024)

    def tables(self, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and signed sin [last - first, rotated channels] for positions [first, last), float32.

        The first half of sin is negated, so that rotation is `x * cos + roll(x) * sin`.
        """
        if last > self._cos.shape[0]:
            self._extend(1 << (last - 1).bit_length())
        return self._cos[first:last], self._sin[first:last]

    def _extend(self, length: int) -> None:
        angles = torch.outer(
            torch.arange(length, dtype=torch.float32, device=self._frequencies.device),
            self._frequencies,
        )
        cos, sin = angles.cos() * self._factor, angles.sin() * self._factor
        self._cos = torch.cat((cos, cos), -1)
        self._sin = torch.cat((-sin, sin), -1)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate `x` [..., head_dim] by tables that broadcast against it (from `Rope.tables`).

    The result has the dtype of `x`; the arithmetic is float32.
    """
    exact = x.float()
    rolled = exact.roll(x.shape[-1] // 2, -1)
    return torch.addcmul(exact * cos, rolled, sin).to(x.dtype)


def rotate_tail(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """`x` [..., channels] with as many of its last channels rotated as the tables are wide."""
    plain = x.shape[-1] - cos.shape[-1]
    return torch.cat((x[..., :plain], rotate(x[..., plain:], cos, sin)), -1)


def yarn_magnitude(factor: float, scale: float) -> float:
    """How much larger YaRN makes what it scales, when a window is `factor` times as long."""
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _number(scaling: Mapping[str, object], name: str) -> float:
    return float(cast("float", scaling[name]))


def _llama3(plain: torch.Tensor, scaling: Mapping[str, object]) -> torch.Tensor:
    factor = _number(scaling, "factor")
    low, high = _number(scaling, "low_freq_factor"), _number(scaling, "high_freq_factor")
    trained = _number(scaling, "original_max_position_embeddings")
    turns = trained * plain / (2 * math.pi)
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * (smooth + (1 - smooth) / factor)


def _yarn(
    config: ModelConfig, plain: torch.Tensor, scaling: Mapping[str, object]
) -> tuple[torch.Tensor, float]:
    factor = _number(scaling, "factor")
    width = config.rotated_channels
    trained = float(
        cast("float", scaling.get("original_max_position_embeddings") or config.max_positions)
    )
    beta_fast = float(cast("float", scaling.get("beta_fast") or 32.0))
    beta_slow = float(cast("float", scaling.get("beta_slow") or 1.0))

    def dimension(turns: float) -> float:
        return width * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(config.rope_theta))

    first, last = dimension(beta_fast), dimension(beta_slow)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    ramp = (torch.arange(width // 2) - first) / max(last - first, 0.001)
    keep = 1 - ramp.clamp(0, 1)
    frequencies = plain / factor * (1 - keep) + plain * keep
    return frequencies, _yarn_attention_factor(factor, scaling)


def _yarn_attention_factor(factor: float, scaling: Mapping[str, object]) -> float:
    stated = scaling.get("attention_factor")
    if stated is not None:
        return float(cast("float", stated))
    mscale, mscale_all = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if mscale and mscale_all:
        every = yarn_magnitude(factor, float(cast("float", mscale_all)))
        return yarn_magnitude(factor, float(cast("float", mscale))) / every
    return yarn_magnitude(factor, 1.0)
