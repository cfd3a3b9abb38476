"""GGUF checkpoints: against transformers' reading of the same weights, and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Qwen3Config

from backend.errors import CheckpointError
from backend.loader import Checkpoint, load_checkpoint
from backend.loader.gguf import gguf_name

Write = Callable[..., Path]


def permute(rows: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """As llama.cpp's convert_hf_to_gguf.py does for the llama architecture."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(
    path: Path,
    config: Any,
    weights: Mapping[str, torch.Tensor],
    spec: Mapping[str, Any],
    *,
    arch: str = "llama",
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    pre: str = "smollm",
    extra: Callable[[gguf.GGUFWriter], None] = lambda writer: None,
    leave_out: str = "",
) -> Path:
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    vocab = sorted(spec["model"]["vocab"].items(), key=lambda item: item[1])
    control = {token["content"] for token in spec["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([text for text, _ in vocab])
    writer.add_token_types([3 if text in control else 1 for text, _ in vocab])
    writer.add_token_merges([" ".join(merge) for merge in spec["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}")
    extra(writer)
    for name, tensor in weights.items():
        if name == "lm_head.weight" or name == leave_out:
            continue
        rows = tensor.numpy()
        if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
            query = ".q_proj." in name
            rows = permute(
                rows, config.num_attention_heads if query else config.num_key_value_heads
            )
        stored = kind if rows.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(gguf_name(name), gguf.quantize(rows, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def spec(tiny_llama: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((tiny_llama / "tokenizer.json").read_text("utf-8"))
    return content


@pytest.fixture(scope="module")
def wide(spec: dict[str, Any]) -> Any:
    """A model whose rows are multiples of the 32 values of a quantised block."""
    config = LlamaConfig(
        vocab_size=len(spec["model"]["vocab"]),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return LlamaForCausalLM(config)


@pytest.fixture(scope="module")
def write(wide: Any, spec: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Write:
    folder = tmp_path_factory.mktemp("gguf")
    count = iter(range(1000))

    def make(**options: Any) -> Path:
        path = folder / f"{next(count)}.gguf"
        return write_gguf(path, wide.config, wide.state_dict(), spec, **options)

    return make


def test_float_file_equals_the_folder(
    tiny_llama: Path, spec: dict[str, Any], tmp_path: Path
) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_llama)
    path = write_gguf(tmp_path / "tiny.gguf", model.config, model.state_dict(), spec)
    ours, folder = load_checkpoint(path), load_checkpoint(tiny_llama)
    assert set(ours.tensors) == set(folder.tensors)
    for name, tensor in folder.tensors.items():
        assert torch.equal(ours.tensors[name], tensor), name
    for field in ("hidden_size", "layers", "heads", "kv_heads", "head_dim", "rope_theta"):
        assert getattr(ours.config, field) == getattr(folder.config, field)
    text = "第十二条 The price is EUR 1,250,000.00 <|im_end|>"
    assert ours.tokenizer.encode(text) == folder.tokenizer.encode(text)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [("F16", 1e-3), ("BF16", 1e-2), ("Q8_0", 1e-2), ("Q5_1", 0.06), ("Q4_1", 0.1), ("Q4_0", 0.15)],
)
def test_quantised_weights(write: Write, wide: Any, kind: str, tolerance: float) -> None:
    checkpoint = load_checkpoint(write(kind=gguf.GGMLQuantizationType[kind]))
    theirs = wide.state_dict()
    for name, tensor in checkpoint.tensors.items():
        assert tensor.dtype == torch.float32
        reach = theirs[name].abs().max()
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=tolerance * float(reach))


def test_qwen3_rows_are_not_moved(spec: dict[str, Any], tmp_path: Path) -> None:
    config = Qwen3Config(
        vocab_size=len(spec["model"]["vocab"]),
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=16,
        tie_word_embeddings=False,
    )
    weights = AutoModelForCausalLM.from_config(config).state_dict()
    path = tmp_path / "qwen3.gguf"

    def output(writer: gguf.GGUFWriter) -> None:
        writer.add_tensor("output.weight", weights["lm_head.weight"].numpy())

    write_gguf(path, config, weights, spec, arch="qwen3", pre="qwen2", extra=output)
    checkpoint = load_checkpoint(path)
    assert checkpoint.config.qk_norm and not checkpoint.config.tie_embeddings
    assert set(checkpoint.tensors) == set(weights)
    for name, tensor in checkpoint.tensors.items():
        assert torch.equal(tensor, weights[name]), name


def test_rope_factors(write: Write) -> None:
    factors = np.linspace(1, 8, 8, dtype=np.float32)
    path = write(extra=lambda writer: writer.add_tensor("rope_freqs.weight", factors))
    scaling = load_checkpoint(path).config.rope_scaling
    assert scaling == {"rope_type": "factors", "factors": tuple(map(float, factors))}


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_rope_scaling(write: Write, kind: str) -> None:
    def scaling(writer: gguf.GGUFWriter) -> None:
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(128)

    found = load_checkpoint(write(extra=scaling)).config.rope_scaling
    assert found is not None
    assert (found["rope_type"], found["factor"]) == (kind, 4.0)
    assert kind == "linear" or found["original_max_position_embeddings"] == 128


def test_chat_template_knows_the_end_token(write: Write) -> None:
    tokenizer = load_checkpoint(write()).tokenizer
    assert tokenizer.chat([{"role": "user", "content": "a"}]) == "a<|im_end|>"


def test_every_end_of_turn_token_ends(write: Write) -> None:
    assert load_checkpoint(write()).config.eos_ids == (2, 0)


def test_the_fingerprint_names_the_content(write: Write) -> None:
    one, again = write(), write(kind=gguf.GGMLQuantizationType.F16)
    copy = one.parent / "copy" / one.name
    copy.parent.mkdir()
    copy.write_bytes(one.read_bytes())
    assert load_checkpoint(one).fingerprint == load_checkpoint(copy).fingerprint
    assert load_checkpoint(one).fingerprint != load_checkpoint(again).fingerprint


def refused(path: Path, pattern: str) -> None:
    with pytest.raises(CheckpointError, match=pattern) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value) and caught.value.remedy


def test_unknown_kinds_are_refused_by_name(write: Write) -> None:
    refused(write(pre="hanzi-bpe"), "pre-tokenizer 'hanzi-bpe'")
    refused(write(arch="mamba"), "architecture 'mamba'")
    refused(write(extra=lambda writer: writer.add_expert_count(8)), "mixture-of-experts")


def test_missing_parts_are_named(write: Write) -> None:
    missing = "model.layers.1.mlp.up_proj.weight"
    refused(write(leave_out=missing), f"{missing} is missing")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    refused(path, "not a GGUF file")
    path.write_bytes(b"")
    refused(path, "not a GGUF file")
    path.write_bytes(b"GGUF" + (1).to_bytes(4, "little") + b"\0" * 16)
    refused(path, "version is 1")
    refused(tmp_path / "absent.gguf", "no such file")


def test_a_file_cut_anywhere_is_refused(write: Write, tmp_path: Path) -> None:
    whole = write().read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [5, 23, 24, 100, 5000, len(whole) // 2, len(whole) - 200]:
        path.write_bytes(whole[:size])
        refused(path, "ends at byte|cut short")


@pytest.fixture(scope="module")
def scratch(write: Write) -> Path:
    return write()


@given(place=st.integers(4, 12_000), value=st.binary(min_size=1, max_size=12))
@settings(deadline=None, max_examples=150)
def test_a_damaged_header_is_refused_or_harmless(scratch: Path, place: int, value: bytes) -> None:
    whole = scratch.read_bytes()
    path = scratch.with_name("damaged.gguf")
    path.write_bytes(whole[:place] + value + whole[place + len(value) :])
    try:
        checkpoint = load_checkpoint(path)
    except CheckpointError as error:
        assert str(path) in str(error)
    else:
        assert isinstance(checkpoint, Checkpoint)


@pytest.mark.model
def test_default_model_shape(default_model: Path) -> None:
    config = load_checkpoint(default_model).config
    assert (config.family, config.layers, config.heads, config.kv_heads) == ("llama", 30, 9, 3)
    assert (config.head_dim, config.vocab_size, config.max_positions) == (64, 49152, 8192)
    assert config.tie_embeddings and config.eos_ids[0] == 2


@pytest.mark.model
def test_default_model_copies_what_it_read(default_model: Path) -> None:
    """Measured 1.4 nats per token; with the rows of q and k left in GGUF's order 5.9."""
    checkpoint = load_checkpoint(default_model)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        rms_norm_eps=1e-5,
        rope_theta=100000.0,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    weights = dict(checkpoint.tensors)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model = model.to_empty(device="cpu")
    model.load_state_dict(weights)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    words = "violet anchor, silent harbour, copper lantern."
    ids = torch.tensor([checkpoint.tokenizer.encode(f"Code words: {words} The words are: {words}")])
    with torch.no_grad():
        logits = model(ids).logits[0]
    losses = torch.nn.functional.cross_entropy(logits[-11:-1], ids[0, -10:], reduction="none")
    assert losses.mean() < 3


def test_weights_that_are_no_numbers_are_refused(write: Write, wide: Any) -> None:
    path = write()
    tensor = wide.state_dict()["model.norm.weight"].numpy().tobytes()
    whole = path.read_bytes()
    assert whole.count(tensor) >= 1
    path.write_bytes(whole.replace(tensor, b"\xff" * len(tensor)))
    tensors = load_checkpoint(path).tensors
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight holds values that are no numb"):
        tensors["model.norm.weight"]
