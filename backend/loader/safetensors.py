"""Reads a Hugging Face folder: config.json, safetensors (one file or shards), tokenizer files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from backend.chat_template import ChatTemplate
from backend.config import FAMILIES, LATENT_FAMILIES, ModelConfig
from backend.errors import CheckpointError
from backend.loader.awq import PACKED, AwqTensors, check_quantisation, dense_shapes, stored_names
from backend.loader.checkpoint import (
    DAMAGED,
    Checkpoint,
    check_config,
    check_finite,
    check_shapes,
    check_tokenizer,
    expected_shapes,
    fingerprint_files,
)
from backend.loader.latent import read_experts, read_latent
from backend.loader.rope import parse_rope
from backend.tokenizer import Tokenizer

_OTHER = f"Use a checkpoint of one of these families: {', '.join(FAMILIES)}"
_DTYPES = {"F32", "F16", "BF16"}


class FolderTensors(Mapping[str, torch.Tensor]):
    """The tensors of one or more safetensors files, mapped from disk in their stored dtype."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        """`files`: tensor name -> the file that holds it."""
        self._files = files
        self._open: dict[Path, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, name: str) -> torch.Tensor:
        path = self._files[name]
        if path not in self._open:
            self._open[path] = safe_open(path, framework="pt")
        return check_finite(path, name, self._open[path].get_tensor(name))


def load_folder(folder: Path) -> Checkpoint:
    """Open a Hugging Face folder; raises CheckpointError."""
    config_path = folder / "config.json"
    raw = _read_json(config_path)
    config = _config(config_path, raw, _eos_ids(folder, raw))
    files = _tensor_files(folder)
    stored, places = _headers(files)
    found = dense_shapes(folder, stored)
    check_config(config_path, config, len(found))
    check_shapes(folder, config, found)
    names = [part for name in expected_shapes(config) for part in stored_names(name, stored)]
    tensors: Mapping[str, torch.Tensor] = FolderTensors({name: places[name] for name in names})
    if len(found) < len(stored):
        tensors = AwqTensors(tensors)
    tokenizer_path = folder / "tokenizer.json"
    spec = _read_json(tokenizer_path)
    template = _template(folder)
    try:
        tokenizer = Tokenizer(spec, template)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"this tokenizer can't be used ({error})"
        remedy = "Use a checkpoint with a BPE tokenizer.json, byte-level or with byte fallback"
        raise CheckpointError(tokenizer_path, problem, remedy) from error
    check_tokenizer(tokenizer_path, config, tokenizer)
    fingerprint = fingerprint_files([config_path, tokenizer_path, *files])
    return Checkpoint(config, tensors, tokenizer, fingerprint)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        remedy = "A Hugging Face folder holds config.json, tokenizer.json and safetensors files"
        raise CheckpointError(path, "the file is missing", remedy) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(path, f"it can't be read as JSON ({error})", DAMAGED) from error
    if not isinstance(content, dict):
        raise CheckpointError(path, "it holds no JSON object", DAMAGED)
    return content


def _tensor_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        weight_map = _read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise CheckpointError(index, "it has no weight_map", DAMAGED)
        names = sorted({str(name) for name in weight_map.values()})
        if any(Path(name).name != name for name in names):
            raise CheckpointError(index, "it names a file outside the folder", DAMAGED)
        return [folder / name for name in names]
    single = folder / "model.safetensors"
    if single.exists():
        return [single]
    if list(folder.glob("*.bin")):
        remedy = "Convert it to safetensors first (pickled weights run code when opened)"
        raise CheckpointError(folder, "it holds pickled weights only", remedy)
    remedy = "It must hold model.safetensors or model.safetensors.index.json with its shards"
    raise CheckpointError(folder, "it holds no safetensors weights", remedy)


def _headers(files: list[Path]) -> tuple[dict[str, tuple[int, ...]], dict[str, Path]]:
    """Name -> shape and name -> file, from the headers alone."""
    shapes: dict[str, tuple[int, ...]] = {}
    places: dict[str, Path] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a mapping
                    view = opened.get_slice(name)
                    codes = view.get_dtype() == "I32" and name.endswith(PACKED)
                    if view.get_dtype() not in _DTYPES and not codes:
                        problem = f"{name} is stored as {view.get_dtype()}"
                        remedy = "Use a checkpoint in bfloat16, float16 or float32"
                        raise CheckpointError(path, problem, remedy)
                    shapes[name] = tuple(view.get_shape())
                    places[name] = path
        except FileNotFoundError as error:
            raise CheckpointError(path, "the file is missing", DAMAGED) from error
        except (OSError, SafetensorError) as error:
            raise CheckpointError(path, f"it can't be read ({error})", DAMAGED) from error
    return shapes, places


def _eos_ids(folder: Path, raw: Mapping[str, Any]) -> tuple[int, ...]:
    """generation_config.json overrides config.json, as in transformers."""
    path = folder / "generation_config.json"
    generation = _read_json(path) if path.exists() else {}
    stated = generation.get("eos_token_id", raw.get("eos_token_id"))
    if stated is None:
        return ()
    return tuple(int(id_) for id_ in (stated if isinstance(stated, list) else [stated]))


def _config(path: Path, raw: Mapping[str, Any], eos_ids: tuple[int, ...]) -> ModelConfig:
    family = raw.get("model_type")
    if family not in FAMILIES:
        raise CheckpointError(path, f"the model family {family!r} is not supported", _OTHER)
    check_quantisation(path, raw)
    if raw.get("hidden_act", "silu") != "silu":
        raise CheckpointError(path, f"its activation is {raw['hidden_act']!r}, not 'silu'", _OTHER)
    _refuse_window(path, family, raw)
    try:
        heads = int(raw["num_attention_heads"])
        hidden = int(raw["hidden_size"])
        theta, scaling = parse_rope(path, raw)
        bias = family == "qwen2" or bool(raw.get("attention_bias", False))
        latent = read_latent(raw, scaling) if family in LATENT_FAMILIES else None
        kv_heads = int(raw.get("num_key_value_heads") or heads)
        head_dim = int(raw.get("head_dim") or hidden // heads)
        if latent is not None:
            kv_heads, head_dim = 1, latent.rank + latent.rotated
        return ModelConfig(
            family=family,
            hidden_size=hidden,
            layers=int(raw["num_hidden_layers"]),
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            intermediate_size=int(raw["intermediate_size"]),
            vocab_size=int(raw["vocab_size"]),
            rms_eps=float(raw["rms_norm_eps"]),
            rope_theta=theta,
            rope_scaling=scaling,
            max_positions=int(raw["max_position_embeddings"]),
            tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
            attention_bias=bias,
            bos_id=raw.get("bos_token_id"),
            eos_ids=eos_ids,
            attention_output_bias=family != "qwen2" and bias,
            mlp_bias=bool(raw.get("mlp_bias", False)),
            qk_norm=family == "qwen3",
            latent=latent,
            experts=None if latent is None else read_experts(path, family, raw),
        )
    except KeyError as error:
        raise CheckpointError(path, f"it lacks {error.args[0]}", DAMAGED) from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise CheckpointError(path, f"a value in it makes no sense ({error})", DAMAGED) from error


def _refuse_window(path: Path, family: str, raw: Mapping[str, Any]) -> None:
    window = raw.get("sliding_window")
    on = bool(raw.get("use_sliding_window", False)) if family != "mistral" else window is not None
    if on and window is not None and window < raw.get("max_position_embeddings", 0):
        remedy = "Use a checkpoint with full attention, such as a later version of this model"
        raise CheckpointError(path, f"it uses sliding-window attention ({window} tokens)", remedy)


def _template(folder: Path) -> ChatTemplate:
    """chat_template.jinja wins over the one in tokenizer_config.json, as in transformers."""
    path = folder / "tokenizer_config.json"
    raw = _read_json(path) if path.exists() else {}
    source = raw.get("chat_template")
    if isinstance(source, list):
        named = {entry["name"]: entry["template"] for entry in source}
        source = named.get("default")
    jinja_path = folder / "chat_template.jinja"
    if jinja_path.exists():
        source = jinja_path.read_text(encoding="utf-8")
    return ChatTemplate(source, _token_text(raw, "bos_token"), _token_text(raw, "eos_token"))


def _token_text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key) or ""
    return str(value["content"]) if isinstance(value, dict) else str(value)
