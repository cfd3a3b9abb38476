"""The shape of a model, whatever file it came from. It knows no tensors and reads no files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
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
class ModelConfig:
    """A decoder-only transformer with grouped-query attention, RMS norms and a gated MLP.

    `rope_theta` is the rotation base, `rms_eps` the epsilon of every norm, `max_positions` the
    length the model was trained for (tokens). `attention_bias` says that q, k and v have biases
    (`attention_output_bias`: o as well, `mlp_bias`: the MLP). `qk_norm`: q and k are RMS-normed
    per head (qwen3). `bos_id` is None for models that have none. Generation ends on any of
    `eos_ids`.
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
