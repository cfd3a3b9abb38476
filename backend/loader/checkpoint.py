"""What a loaded checkpoint is, which tensors it must hold, and how it is told from others.

It knows no file format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from backend.config import ModelConfig
from backend.errors import CheckpointError
from backend.loader.latent import attention_shapes, expert_shapes, is_sound, mlp_shapes
from backend.tokenizer import Tokenizer

DAMAGED = "The checkpoint is damaged or incomplete: copy or download it again"
"""What to do about most broken checkpoints."""

_SAMPLES = 256
_SAMPLE_BYTES = 64 * 1024
_EDGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights, shape and tokenizer of one model.

    `tensors` has Hugging Face names ("model.layers.0.self_attn.q_proj.weight", ...). A tensor is
    read (and, from GGUF, dequantised) each time it is asked for: keep what you take. Safetensors
    keep their stored dtype, GGUF gives float32. With `config.tie_embeddings` there is no
    "lm_head.weight". `fingerprint` names weights, shape and tokenizer: KV made by one fingerprint
    is of no use to another.
    """

    config: ModelConfig
    tensors: Mapping[str, torch.Tensor]
    tokenizer: Tokenizer
    fingerprint: str


def check_config(path: Path, config: ModelConfig, tensor_count: int) -> None:
    """Raise CheckpointError when the shape makes no sense, before anything is built from it."""
    sizes = (
        *(config.hidden_size, config.layers, config.heads, config.kv_heads, config.head_dim),
        *(config.intermediate_size, config.vocab_size, config.max_positions),
    )
    sound = (
        all(isinstance(size, int) and size > 0 for size in sizes)
        and config.layers <= tensor_count
        and config.heads % config.kv_heads == 0
        and config.head_dim % 2 == 0
        and config.rms_eps > 0
        and config.rope_theta > 0
        and is_sound(config, tensor_count)
    )
    if not sound:
        problem = f"its sizes contradict each other or its {tensor_count} tensors ({config})"
        raise CheckpointError(path, problem, DAMAGED)


def check_tokenizer(path: Path, config: ModelConfig, tokenizer: Tokenizer) -> None:
    """Raise CheckpointError when the tokenizer can give ids that the model has no row for."""
    if tokenizer.vocab_size > config.vocab_size:
        problem = f"{tokenizer.vocab_size} tokens, but the model has {config.vocab_size}"
        remedy = "The tokenizer belongs to another model: copy the whole checkpoint again"
        raise CheckpointError(path, f"the tokenizer has {problem}", remedy)


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Hugging Face name -> shape of every tensor that a checkpoint of this shape must hold."""
    hidden, experts = config.hidden_size, config.experts
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, hidden)}
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        shapes[prefix + "input_layernorm.weight"] = (hidden,)
        shapes[prefix + "post_attention_layernorm.weight"] = (hidden,)
        if config.latent is None:
            shapes |= _grouped_shapes(config, prefix)
        else:
            shapes |= attention_shapes(config, config.latent, prefix)
        if experts is None or layer < experts.dense_layers:
            inner, bias = config.intermediate_size, config.mlp_bias
            shapes |= mlp_shapes(f"{prefix}mlp.", hidden, inner, bias=bias)
        else:
            shapes |= expert_shapes(config, experts, prefix)
    shapes["model.norm.weight"] = (hidden,)
    if not config.tie_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    return shapes


def _grouped_shapes(config: ModelConfig, at: str) -> dict[str, tuple[int, ...]]:
    hidden = config.hidden_size
    q_rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {}
    linears = {
        "self_attn.q_proj": (q_rows, hidden, config.attention_bias),
        "self_attn.k_proj": (kv_rows, hidden, config.attention_bias),
        "self_attn.v_proj": (kv_rows, hidden, config.attention_bias),
        "self_attn.o_proj": (hidden, q_rows, config.attention_output_bias),
    }
    for name, (rows, columns, bias) in linears.items():
        shapes[f"{at}{name}.weight"] = (rows, columns)
        if bias:
            shapes[f"{at}{name}.bias"] = (rows,)
    if config.qk_norm:
        shapes[at + "self_attn.q_norm.weight"] = (config.head_dim,)
        shapes[at + "self_attn.k_norm.weight"] = (config.head_dim,)
    return shapes


def check_shapes(path: Path, config: ModelConfig, found: Mapping[str, tuple[int, ...]]) -> None:
    """Raise CheckpointError when a tensor that the engine needs is missing or misshapen."""
    for name, shape in expected_shapes(config).items():
        if name not in found:
            raise CheckpointError(path, f"the tensor {name} is missing", DAMAGED)
        if found[name] != shape:
            problem = f"the tensor {name} has shape {found[name]}, its config says {shape}"
            raise CheckpointError(path, problem, DAMAGED)


def check_finite(path: Path, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor. Raise CheckpointError when it holds NaN or infinity: no model does."""
    if not tensor.isfinite().all():
        raise CheckpointError(path, f"the tensor {name} holds values that are no numbers", DAMAGED)
    return tensor


def fingerprint_files(paths: Iterable[Path]) -> str:
    """SHA-256 (hex) over the name, size and bytes of the files, in the order given.

    Files over 18 MiB are sampled (1 MiB at each end, 256 evenly spaced pieces of 64 KiB) so that
    opening a 16 GB checkpoint does not read all of it: it tells checkpoints apart, it does not
    prove them undamaged. File names count, folders don't, so a copy has the same fingerprint.
    """
    digest = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= 2 * _EDGE_BYTES + _SAMPLES * _SAMPLE_BYTES:
                while piece := file.read(_EDGE_BYTES):
                    digest.update(piece)
                continue
            digest.update(file.read(_EDGE_BYTES))
            step = (size - _SAMPLE_BYTES) // _SAMPLES
            for index in range(1, _SAMPLES):
                file.seek(index * step)
                digest.update(file.read(_SAMPLE_BYTES))
            file.seek(size - _EDGE_BYTES)
            digest.update(file.read())
    return digest.hexdigest()
