"""A decoder's layers with multi-head latent attention (deepseek_v2, deepseek_v3).

Source: DeepSeek-AI, DeepSeek-V2 (arXiv 2405.04434). What is kept of a token is one head: its latent
(512 channels, normed) and a key of 64 channels before rotation. A head's keys and values would be
products of the latent with matrices of its own; instead queries are multiplied by the keys' matrix
and what attention read by the values' ("absorbed"), so that attention reads the latents as they
are stored. Per token that costs as much as making keys and values; attention itself has 3.4 times
the arithmetic of heads of 192 and 128, which in a block of 512 tokens is a few percent of a layer.

Knows no cache and no positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.config import LatentShape, ModelConfig
from backend.layers.linear import Linear
from backend.models.experts import Experts, load_experts
from backend.models.layers import GatedMlp, Norm, TensorSource, rms

_EPS = 1e-6
"""Of the norms inside attention, whatever the checkpoint says of the others."""


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of all heads: straight from the stream, or through a normed narrow row."""

    first: Linear
    norm: torch.Tensor | None
    second: Linear | None

    def __call__(self, normed: torch.Tensor) -> torch.Tensor:
        """[n, hidden] to [n, heads * channels]."""
        rows = self.first(normed)
        if self.norm is None or self.second is None:
            return rows
        return self.second(rms(rows, self.norm, _EPS))


@dataclass(frozen=True, slots=True)
class LatentLayer:
    """One layer. `keys` [heads, unrotated, rank] and `values` [heads, rank, value] make heads of a
    latent."""

    heads: int
    shape: LatentShape
    attention_norm: Norm
    asked: Queries
    kept: Linear
    kept_norm: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    output: Linear
    mlp_norm: Norm
    mlp: GatedMlp | Experts

    def queries(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The stream with `given`, q of all heads and what is kept, [n, heads + 1, rank + rotated],
        and the latents alone, [n, 1, rank] (see `backend.models.Attend`)."""
        shape = self.shape
        stream, normed = self.attention_norm(stream, given)
        q = self.asked(normed).view(len(normed), self.heads, -1)
        kept = self.kept(normed)
        qk = kept.new_empty(len(normed), self.heads + 1, kept.shape[1])
        unrotated = q[..., : shape.unrotated].transpose(0, 1).to(self.keys.dtype)
        qk[:, :-1, : shape.rank] = torch.bmm(unrotated, self.keys).transpose(0, 1)
        qk[:, :-1, shape.rank :] = q[..., shape.unrotated :]
        qk[:, -1, : shape.rank] = rms(kept[:, : shape.rank], self.kept_norm, _EPS)
        qk[:, -1, shape.rank :] = kept[:, shape.rank :]
        return stream, qk, qk[:, -1:, : shape.rank]

    def out(self, read: torch.Tensor) -> torch.Tensor:
        """[n, hidden] of the latents that each head read, [n, heads * rank]."""
        heads = read.view(len(read), self.heads, -1).transpose(0, 1).to(self.values.dtype)
        return self.output(torch.bmm(heads, self.values).transpose(0, 1).flatten(1))

    def feed(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DecoderLayer`."""
        stream, normed = self.mlp_norm(stream, given)
        return stream, self.mlp(normed)


def load_latent_layers(
    config: ModelConfig, latent: LatentShape, source: TensorSource
) -> tuple[LatentLayer, ...]:
    """All layers of a model with latent attention."""
    return tuple(_load_layer(config, latent, source, index) for index in range(config.layers))


def _load_layer(
    config: ModelConfig, latent: LatentShape, source: TensorSource, index: int
) -> LatentLayer:
    at = f"model.layers.{index}."
    attention = f"{at}self_attn."
    both = source.stored(f"{attention}kv_b_proj.weight").view(config.heads, -1, latent.rank)
    experts = config.experts
    return LatentLayer(
        heads=config.heads,
        shape=latent,
        attention_norm=source.norm(f"{at}input_layernorm.weight", config.rms_eps),
        asked=_queries(config, latent, source, attention),
        kept=_turned(
            latent, source, f"{attention}kv_a_proj_with_mqa", heads=1, bias=config.attention_bias
        ),
        kept_norm=source.exact(f"{attention}kv_a_layernorm.weight"),
        keys=source.rounded(both[:, : latent.unrotated]),
        values=source.rounded(both[:, latent.unrotated :].transpose(1, 2)),
        output=source.projection([f"{attention}o_proj"], config.attention_output_bias),
        mlp_norm=source.norm(f"{at}post_attention_layernorm.weight", config.rms_eps),
        mlp=source.mlp(f"{at}mlp.", config.mlp_bias)
        if experts is None or index < experts.dense_layers
        else load_experts(experts, source, f"{at}mlp.", config.mlp_bias),
    )


def _queries(config: ModelConfig, latent: LatentShape, source: TensorSource, at: str) -> Queries:
    if latent.query_rank is None:
        return Queries(_turned(latent, source, f"{at}q_proj", heads=config.heads), None, None)
    return Queries(
        source.projection([f"{at}q_a_proj"], config.attention_bias),
        source.exact(f"{at}q_a_layernorm.weight"),
        _turned(latent, source, f"{at}q_b_proj", heads=config.heads),
    )


def _turned(
    latent: LatentShape, source: TensorSource, module: str, *, heads: int, bias: bool = False
) -> Linear:
    """A linear layer whose last channels of each head are rotated afterwards."""
    parts = [source.stored(f"{module}.weight")]
    if bias:
        parts.append(source.stored(f"{module}.bias"))
    if latent.interleaved:
        parts = [half_split(part, heads, latent.rotated) for part in parts]
    return source.linear(parts[0], parts[1] if bias else None)


def half_split(rows: torch.Tensor, heads: int, rotated: int) -> torch.Tensor:
    """Rows [heads * channels, ...] with the last `rotated` of each head reordered, from pairs that
    stand next to each other to pairs half of `rotated` apart, as `backend.layers.rope` turns them.
    A score does not change when queries and keys are reordered alike."""
    each = rows.unflatten(0, (heads, -1))
    plain, tail = each[:, :-rotated], each[:, -rotated:]
    return torch.cat((plain, tail[:, 0::2], tail[:, 1::2]), 1).flatten(0, 1)
