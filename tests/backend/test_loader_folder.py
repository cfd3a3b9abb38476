"""Hugging Face folders: against transformers' reading of the same files, and damaged ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from backend.errors import CheckpointError
from backend.loader import load_checkpoint

SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 70,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "eos_token_id": 2,
}


@pytest.fixture
def folder(tiny_llama: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(tiny_llama, tmp_path / "model"))


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def refused(path: Path, pattern: str) -> None:
    with pytest.raises(CheckpointError, match=pattern) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value) and caught.value.remedy


def test_weights_match_transformers(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    theirs = AutoModelForCausalLM.from_pretrained(tiny_llama).state_dict()
    assert set(checkpoint.tensors) | {"lm_head.weight"} == set(theirs)
    for name, tensor in checkpoint.tensors.items():
        assert torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (LlamaConfig, {"attention_bias": True, "mlp_bias": True}, {"mlp_bias": True}),
        (MistralConfig, {"sliding_window": None, "head_dim": 20}, {"head_dim": 20}),
        (Qwen2Config, {}, {"attention_bias": True, "attention_output_bias": False}),
        (Qwen3Config, {"head_dim": 18}, {"qk_norm": True, "head_dim": 18}),
    ],
)
def test_families(
    folder: Path,
    kind: type[PreTrainedConfig],
    options: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    vocab = load_checkpoint(folder).config.vocab_size
    config = kind(**SIZES, **options, vocab_size=vocab, tie_word_embeddings=False)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")
    assert (folder / "model.safetensors.index.json").exists()
    checkpoint = load_checkpoint(folder)
    assert checkpoint.config.family == config.model_type
    for field, value in expected.items():
        assert getattr(checkpoint.config, field) == value
    theirs = model.state_dict()
    assert set(checkpoint.tensors) == set(theirs)
    for name, tensor in checkpoint.tensors.items():
        assert tensor.dtype == torch.bfloat16
        assert torch.equal(tensor, theirs[name]), name


def test_end_tokens_come_from_the_generation_config(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, 2]}')
    assert load_checkpoint(folder).config.eos_ids == (0, 2)
    (folder / "generation_config.json").unlink()
    assert load_checkpoint(folder).config.eos_ids == (2,)


def test_template_file_wins_over_the_tokenizer_config(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ bos_token }}|{{ messages[0].content }}")
    chat = load_checkpoint(folder).tokenizer.chat([{"role": "user", "content": "a"}])
    assert chat == "<|im_start|>|a"


def test_named_templates(folder: Path) -> None:
    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    edit(folder / "tokenizer_config.json", lambda raw: raw.update(chat_template=named))
    assert load_checkpoint(folder).tokenizer.chat([]) == "d"


LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, {"factor": 2.0}),
        ({"rope_scaling": {"rope_type": "llama3", **LLAMA3}}, LLAMA3),
        (
            {"rope_scaling": {"type": "yarn", "factor": 4.0}},
            {"factor": 4.0, "original_max_position_embeddings": 4096},
        ),
        (
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 16}},
            {"factor": 4.0, "beta_fast": 16, "original_max_position_embeddings": 4096},
        ),
    ],
)
def test_rope_scaling(folder: Path, written: dict[str, Any], read: dict[str, Any]) -> None:
    def change(raw: dict[str, Any]) -> None:
        del raw["rope_parameters"]
        raw.update({"rope_theta": 5e5, **written})

    edit(folder / "config.json", change)
    config = load_checkpoint(folder).config
    assert config.rope_theta == 5e5 and config.rope_scaling is not None
    assert {key: config.rope_scaling[key] for key in config.rope_scaling if key != "rope_type"} == (
        read
    )


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"model_type": "gemma3"}, "family 'gemma3'.*llama, mistral"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "'longrope'.*linear, llama3, yarn"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8}}, "lacks low_freq_factor"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised by another"),
        ({"hidden_act": "gelu"}, "activation is 'gelu'"),
        ({"hidden_size": "wide"}, "makes no sense"),
        ({"hidden_size": 48}, "embed_tokens.weight has shape"),
        ({"num_hidden_layers": 4}, "layers.3.input_layernorm.weight is missing"),
        ({"num_hidden_layers": 10**9}, "contradict"),
        ({"num_attention_heads": 0}, "makes no sense"),
        ({"num_key_value_heads": 4}, "contradict"),
        ({"rms_norm_eps": None}, "makes no sense"),
        ({"model_type": "mistral", "sliding_window": 1024}, "sliding-window attention .1024"),
        ({"sliding_window": 512, "use_sliding_window": True}, "sliding-window attention .512"),
    ],
)
def test_configs_that_can_not_be_run(folder: Path, change: dict[str, Any], pattern: str) -> None:
    if "num_attention_heads" in change:
        edit(folder / "config.json", lambda raw: raw.pop("head_dim", None))
    edit(folder / "config.json", lambda raw: raw.update(change))
    with pytest.raises(CheckpointError, match=pattern) as caught:
        load_checkpoint(folder)
    assert str(folder) in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_files_that_are_missing_or_no_json(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for damaged, pattern in [
        (content[:-20], "read as JSON"),
        (b"\xff\xfe\x00", "read as JSON"),
        (b"[]", "no JSON object"),
    ]:
        (folder / name).write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{name}.*{pattern}"):
            load_checkpoint(folder)
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}.*missing"):
        load_checkpoint(folder)


def test_weights_cut_short_or_damaged(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for damaged in [b"", whole[:4], whole[:100], whole[:-1], b"\xff" * 8 + whole[8:]]:
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="model.safetensors.*can't be read"):
            load_checkpoint(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder: Path, value: float) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] = value
    save_file(weights, folder / "model.safetensors")
    tensors = load_checkpoint(folder).tensors
    with pytest.raises(CheckpointError, match="model.norm.weight holds values that are no numbers"):
        tensors["model.norm.weight"]


def test_weights_that_lack_a_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, folder / "model.safetensors")
    refused(folder, "model.norm.weight is missing")


def test_weights_of_another_type(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: tensor.to(torch.float8_e4m3fn) for name, tensor in weights.items()},
        folder / "model.safetensors",
    )
    with pytest.raises(CheckpointError, match="stored as F8_E4M3.*bfloat16"):
        load_checkpoint(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="model-00002-of-00002.safetensors: .*missing"):
        load_checkpoint(folder)
    index = {"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="outside the folder"):
        load_checkpoint(folder)


def test_folders_without_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "pickled weights only.*safetensors")
    (folder / "pytorch_model.bin").unlink()
    refused(folder, "no safetensors weights")
    refused(folder / "absent", "no such file or folder")


def test_a_single_safetensors_file_is_no_model(folder: Path) -> None:
    refused(folder / "model.safetensors", "alone is not a model.*folder")


def test_a_tokenizer_of_another_model(folder: Path) -> None:
    def grow(raw: dict[str, Any]) -> None:
        raw["model"]["vocab"]["zzzz"] = 100_000

    edit(folder / "tokenizer.json", grow)
    with pytest.raises(CheckpointError, match="100001 tokens.*another model"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"model": {"type": "Unigram", "vocab": []}}, "Unigram, not BPE"),
        ({"decoder": {"type": "WordPiece"}}, "WordPiece"),
        ({"pre_tokenizer": {"type": "Unknown"}}, "can't be built"),
    ],
)
def test_tokenizers_that_can_not_be_used(
    folder: Path, change: dict[str, Any], pattern: str
) -> None:
    edit(folder / "tokenizer.json", lambda raw: raw.update(change))
    with pytest.raises(CheckpointError, match=f"tokenizer.json.*{pattern}"):
        load_checkpoint(folder)


def test_the_fingerprint_follows_weights_config_and_tokenizer(folder: Path) -> None:
    before = load_checkpoint(folder).fingerprint
    assert load_checkpoint(folder).fingerprint == before
    edit(folder / "config.json", lambda raw: raw.update(rms_norm_eps=1e-5))
    after_config = load_checkpoint(folder).fingerprint
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] += 1
    save_file(weights, folder / "model.safetensors")
    assert len({before, after_config, load_checkpoint(folder).fingerprint}) == 3
