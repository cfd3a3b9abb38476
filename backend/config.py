"""The shape of a model, whatever file it came from. It knows no tensors and reads no files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kvstore.types import KVShape

LATENT_FAMILIES = ("deepseek_v2", "deepseek_v3")
"""Families with multi-head latent attention and, mostly, mixtures of experts."""

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", *LATENT_FAMILIES)
"""Model families of the engine, as named by `model_type` in a Hugging Face config.json."""

RopeScaling = Mapping[str, object]
"""`rope_type` and its parameters under their Hugging Face names.

- "linear": `factor`
- "llama3": `factor`, `low_freq_factor`, `high_freq_factor`, `original_max_position_embeddings`
- "yarn": `factor`, `original_max_position_embeddings`, and `beta_fast`, `beta_slow`,
  `attention_factor`, `mscale`, `mscale_all_dim`, `truncate` where the checkpoint states them
- "factors": `factors`, a tuple of head_dim / 2 numbers that the inverse frequencies are divided
  by (how GGUF files store llama3 scaling)
"""


@dataclass(frozen=True, slots=True)
class LatentShape:
    """Multi-head latent attention (DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434).

    A token is kept as `rank` channels, of which every head's keys and values are made, and
    `rotated` channels of a key that all heads share: the only ones that RoPE turns. A head's
    queries and keys have `unrotated` channels beside those, its values have `value`. Queries come
    from `query_rank` channels, or straight from the stream (None). Scores are multiplied by
    `scale`. `interleaved`: the two channels of a rotated pair stand next to each other in the
    checkpoint, else half of `rotated` apart.
    """

    rank: int
    rotated: int
    unrotated: int
    value: int
    query_rank: int | None
    scale: float
    interleaved: bool


@dataclass(frozen=True, slots=True)
class ExpertsShape:
    """The mixture of experts in the layers from `dense_layers` on: each token goes to `chosen` of
    `count` gated MLPs of `width`, and to one of `shared_width` (0: there is none).

    Experts lie in `groups` of equal size and are chosen within the best `chosen_groups` of them.
    "softmax" scores are of all experts together and a group is as good as its best; "sigmoid"
    scores stand alone, have a learned correction added while experts are chosen, and a group is as
    good as its two best. The scores of the chosen are their weights, normalised to a sum of 1 with
    `normalised`, times `factor`.
    """

    dense_layers: int
    count: int
    chosen: int
    width: int
    shared_width: int
    scoring: Literal["softmax", "sigmoid"]
    groups: int
    chosen_groups: int
    normalised: bool
    factor: float


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer with grouped-query attention, RMS norms and a gated MLP.

    `rope_theta` is the rotation base, `rms_eps` the epsilon of every norm, `max_positions` the
    length the model was trained for (tokens). `attention_bias` says that q, k and v have biases
    (`attention_output_bias`: o as well, `mlp_bias`: the MLP). `qk_norm`: q and k are RMS-normed
    per head (qwen3). `bos_id` is None for models that have none. Generation ends on any of
    `eos_ids`.

    With `latent` there is one key-value head, what is kept of a token: `head_dim` is
    `latent.rank + latent.rotated`. With `experts` some layers have them in place of the MLP.
    """

    family: str
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rms_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None
    max_positions: int
    tie_embeddings: bool
    attention_bias: bool
    bos_id: int | None
    eos_ids: tuple[int, ...]
    attention_output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    latent: LatentShape | None = None
    experts: ExpertsShape | None = None

    @property
    def rotated_channels(self) -> int:
        """Channels of a query or key that RoPE turns."""
        return self.head_dim if self.latent is None else self.latent.rotated

    @property
    def kv_shape(self) -> KVShape:
        """What the KV store keeps of a token."""
        rank = 0 if self.latent is None else self.latent.rank
        return KVShape(self.layers, self.kv_heads, self.head_dim, rank)
