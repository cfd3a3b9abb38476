"""Makes a checkpoint of a GGUF file of the llama, qwen2 or qwen3 architecture.

The `gguf` package dequantises; `gguf_header` finds what lies where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import dequantize

from backend.chat_template import ChatTemplate
from backend.config import ModelConfig, RopeScaling
from backend.errors import CheckpointError
from backend.loader.checkpoint import (
    Checkpoint,
    check_config,
    check_finite,
    check_shapes,
    expected_shapes,
    fingerprint_files,
)
from backend.loader.gguf_header import (
    DamagedHeader,
    GgufHeader,
    TensorPlace,
    read_blocks,
    read_header,
)
from backend.loader.gguf_tokenizer import tokenizer_spec
from backend.tokenizer import Tokenizer

_AGAIN = "The file is damaged or cut short: copy or download it again"
_OTHER = "Use a GGUF of the llama, qwen2 or qwen3 architecture, or a Hugging Face folder"
_END_TEXTS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>")
_TOP_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """The GGUF name of a tensor: "model.layers.0.mlp.up_proj.weight" -> "blk.0.ffn_up.weight"."""
    stem, _, kind = name.rpartition(".")
    if stem in _TOP_NAMES:
        return f"{_TOP_NAMES[stem]}.{kind}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_LAYER_NAMES[part]}.{kind}"


def unpermute(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Undo the row order that llama.cpp's converter gives q and k of the llama architecture.

    GGUF keeps the two halves of a rotated pair next to each other, Hugging Face half a head apart.
    """
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)


class GgufTensors(Mapping[str, torch.Tensor]):
    """The tensors of a GGUF file by Hugging Face name, dequantised to float32 on access."""

    def __init__(self, path: Path, places: Mapping[str, TensorPlace], config: ModelConfig) -> None:
        self._path = path
        self._places = places
        self._config = config
        self._permuted = config.family == "llama"

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> torch.Tensor:
        place = self._places[name]
        tensor = check_finite(self._path, name, torch.from_numpy(_values(self._path, name, place)))
        if not self._permuted:
            return tensor
        if ".q_proj." in name:
            return unpermute(tensor, self._config.heads)
        if ".k_proj." in name:
            return unpermute(tensor, self._config.kv_heads)
        return tensor


def load_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file; raises CheckpointError."""
    header = _open(path)
    fields, places = header.fields, header.tensors
    try:
        config = _config(path, fields, places)
        check_config(path, config, len(places))
        tokenizer = Tokenizer(tokenizer_spec(fields), _template(fields, config))
    except KeyError as error:
        raise CheckpointError(path, f"its metadata lacks {error.args[0]}", _AGAIN) from error
    except ValueError as error:
        raise CheckpointError(path, str(error), _OTHER) from error
    except (TypeError, IndexError, AttributeError, ArithmeticError) as error:
        problem = f"a value in its metadata makes no sense ({error})"
        raise CheckpointError(path, problem, _AGAIN) from error
    names = {name: gguf_name(name) for name in expected_shapes(config)}
    present = {name: places[key] for name, key in names.items() if key in places}
    shapes = {name: place.shape for name, place in present.items()}
    check_shapes(path, config, shapes)
    tensors = GgufTensors(path, present, config)
    return Checkpoint(config, tensors, tokenizer, fingerprint_files([path]))


def _template(fields: Mapping[str, Any], config: ModelConfig) -> ChatTemplate:
    texts = fields["tokenizer.ggml.tokens"]
    bos = texts[config.bos_id] if config.bos_id is not None else ""
    eos = texts[config.eos_ids[0]] if config.eos_ids else ""
    return ChatTemplate(fields.get("tokenizer.chat_template"), bos, eos)


def _values(path: Path, name: str, place: TensorPlace) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A tensor as float32, in its shape, in memory of its own."""
    blocks = read_blocks(path, place)
    try:
        values = dequantize(blocks, place.kind)
    except NotImplementedError as error:
        problem = f"{name} is stored as {place.kind.name}, which can't be read"
        raise CheckpointError(path, problem, _OTHER) from error
    # Unquantised values still lie in the read-only file.
    return np.require(values, np.float32, ["C", "W"]).reshape(place.shape)


def _open(path: Path) -> GgufHeader:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise CheckpointError(path, "it is not a GGUF file", _OTHER)
    try:
        return read_header(path)
    except DamagedHeader as error:
        raise CheckpointError(path, str(error), _AGAIN) from error


def _config(
    path: Path, fields: Mapping[str, Any], places: Mapping[str, TensorPlace]
) -> ModelConfig:
    family = fields["general.architecture"]
    if family not in ("llama", "qwen2", "qwen3"):
        raise CheckpointError(path, f"its architecture {family!r} is not supported", _OTHER)
    if f"{family}.expert_count" in fields and fields[f"{family}.expert_count"]:
        raise CheckpointError(path, "mixture-of-experts models are not supported", _OTHER)
    heads = fields[f"{family}.attention.head_count"]
    hidden = fields[f"{family}.embedding_length"]
    texts = fields["tokenizer.ggml.tokens"]
    return ModelConfig(
        family=family,
        hidden_size=hidden,
        layers=fields[f"{family}.block_count"],
        heads=heads,
        kv_heads=fields.get(f"{family}.attention.head_count_kv", heads),
        head_dim=fields.get(f"{family}.attention.key_length", hidden // heads),
        intermediate_size=fields[f"{family}.feed_forward_length"],
        vocab_size=len(texts),
        rms_eps=fields[f"{family}.attention.layer_norm_rms_epsilon"],
        rope_theta=fields.get(f"{family}.rope.freq_base", 10000.0),
        rope_scaling=_rope_scaling(path, family, fields, places),
        max_positions=fields[f"{family}.context_length"],
        tie_embeddings="output.weight" not in places,
        attention_bias="blk.0.attn_q.bias" in places,
        bos_id=fields.get("tokenizer.ggml.bos_token_id"),
        eos_ids=_eos_ids(fields, texts),
        attention_output_bias="blk.0.attn_output.bias" in places,
        mlp_bias="blk.0.ffn_up.bias" in places,
        qk_norm="blk.0.attn_q_norm.weight" in places,
    )


def _eos_ids(fields: Mapping[str, Any], texts: list[str]) -> tuple[int, ...]:
    """The stated end token first, then the other tokens that end a turn, as llama.cpp finds them:
    a GGUF states one while chat models end with another."""
    stated = [fields.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot", "eom")]
    kinds = fields.get("tokenizer.ggml.token_type", [])
    known = [id_ for id_, kind in enumerate(kinds) if kind == 3 and texts[id_] in _END_TEXTS]
    return tuple(dict.fromkeys([id_ for id_ in stated if id_ is not None] + known))


def _rope_scaling(
    path: Path, family: str, fields: Mapping[str, Any], places: Mapping[str, TensorPlace]
) -> RopeScaling | None:
    if "rope_freqs.weight" in places:
        place = places["rope_freqs.weight"]
        factors = _values(path, "rope_freqs.weight", place).reshape(-1)
        return {"rope_type": "factors", "factors": tuple(float(factor) for factor in factors)}
    kind = fields.get(f"{family}.rope.scaling.type", "none")
    if kind == "none":
        return None
    factor = float(fields[f"{family}.rope.scaling.factor"])
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        original = fields[f"{family}.rope.scaling.original_context_length"]
        return {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": int(original),
        }
    raise CheckpointError(path, f"its RoPE scaling {kind!r} is not supported", _OTHER)
