"""Engines of well-known shapes with random weights: speed needs no checkpoint.

Weights are drawn on the device they are used on. Answers mean nothing; the tokenizer is another
model's, so texts have the length that it gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from app.errors import BadParameter
from backend.config import ModelConfig
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.parts import EngineParts, make_parts

_8B = ModelConfig(
    family="llama",
    hidden_size=4096,
    layers=32,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate_size=14336,
    vocab_size=128_256,
    rms_eps=1e-5,
    rope_theta=500_000.0,
    rope_scaling=None,
    max_positions=131_072,
    tie_embeddings=False,
    attention_bias=False,
    bos_id=None,
    eos_ids=(128_009,),
)
SHAPES = {"8b": _8B}
"""By the name that `--shape` takes: the sizes of Llama 3.1 8B."""

_SPREAD = 0.02
"""Standard deviation of the weights, as models are initialised."""


def shape_config(name: str) -> ModelConfig:
    """The sizes of a shape. Raises BadParameter for a name that there is not."""
    if name not in SHAPES:
        raise BadParameter(f"No shape {name!r}; there are {', '.join(SHAPES)}")
    return SHAPES[name]


def random_parts(name: str, config: EngineConfig) -> EngineParts:
    """Model of that shape, the tokenizer of `config.model`, and an empty store.

    Raises BadParameter, CheckpointError and BackendError.
    """
    shape, device = shape_config(name), torch.device(config.device)
    precision = config.resolved_precision()
    if device.type != "cuda":
        raise BackendError(f"A model of shape {name} is for GPUs; its weights alone take minutes")
    tokenizer = load_checkpoint(config.model).tokenizer
    tensors = _RandomTensors(shape, device)
    model = Decoder(
        shape,
        tensors,
        precision,
        device,
        linear_format=config.linear_format,
        few_rows=config.few_rows,
    )
    return make_parts(config, model, tokenizer, f"random weights, shape {name}")


class _RandomTensors(Mapping[str, torch.Tensor]):
    """Drawn anew each time one is asked for, so that no second copy of the model lies around."""

    def __init__(self, config: ModelConfig, device: torch.device) -> None:
        self._device = device
        hidden, wide = config.hidden_size, config.intermediate_size
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self._sizes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (config.vocab_size, hidden),
            "lm_head.weight": (config.vocab_size, hidden),
            "model.norm.weight": (hidden,),
        }
        for layer in range(config.layers):
            at = f"model.layers.{layer}."
            self._sizes |= {
                f"{at}input_layernorm.weight": (hidden,),
                f"{at}post_attention_layernorm.weight": (hidden,),
                f"{at}self_attn.q_proj.weight": (queries, hidden),
                f"{at}self_attn.k_proj.weight": (keys, hidden),
                f"{at}self_attn.v_proj.weight": (keys, hidden),
                f"{at}self_attn.o_proj.weight": (hidden, queries),
                f"{at}mlp.gate_proj.weight": (wide, hidden),
                f"{at}mlp.up_proj.weight": (wide, hidden),
                f"{at}mlp.down_proj.weight": (hidden, wide),
            }

    def __getitem__(self, name: str) -> torch.Tensor:
        size = self._sizes[name]
        if len(size) == 1:
            return torch.ones(size, device=self._device)
        place = list(self._sizes).index(name)
        drawn = torch.Generator(self._device).manual_seed(place)
        weight = torch.empty(size, device=self._device, dtype=torch.bfloat16)
        return weight.normal_(0.0, _SPREAD, generator=drawn)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)
