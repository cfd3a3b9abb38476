"""What is special about checkpoints with latent attention and experts (deepseek_v2, deepseek_v3):
their settings in a config.json, and their tensors.

It opens no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from backend.config import ExpertsShape, LatentShape, ModelConfig, RopeScaling
from backend.errors import CheckpointError
from backend.layers.rope import yarn_magnitude

_RELEASED = "Use a checkpoint with the router of DeepSeek-V2, -V2-Lite or -V3"

Shapes = dict[str, tuple[int, ...]]


def read_latent(raw: Mapping[str, Any], scaling: RopeScaling | None) -> LatentShape:
    """Latent attention of a config.json. Raises KeyError, TypeError or ValueError."""
    rotated, unrotated = int(raw["qk_rope_head_dim"]), int(raw["qk_nope_head_dim"])
    scale = float(unrotated + rotated) ** -0.5
    every = None if scaling is None else scaling.get("mscale_all_dim")
    if scaling is not None and every:
        # YaRN lengthens queries and keys. The tables touch some of their channels only, so the
        # scale does it for all, and the tables do what is left (`mscale` over `mscale_all_dim`).
        scale *= yarn_magnitude(float(str(scaling["factor"])), float(str(every))) ** 2
    query_rank = raw.get("q_lora_rank")
    return LatentShape(
        rank=int(raw["kv_lora_rank"]),
        rotated=rotated,
        unrotated=unrotated,
        value=int(raw["v_head_dim"]),
        query_rank=None if query_rank is None else int(query_rank),
        scale=scale,
        interleaved=bool(raw.get("rope_interleave", True)),
    )


def read_experts(path: Path, family: str, raw: Mapping[str, Any]) -> ExpertsShape | None:
    """The mixture of experts of a config.json, None without one. Raises CheckpointError for a
    router that the engine has not, and KeyError, TypeError or ValueError."""
    if raw.get("n_routed_experts") is None:
        return None
    scoring: Literal["softmax", "sigmoid"] = "softmax" if family == "deepseek_v2" else "sigmoid"
    methods = ("greedy", "group_limited_greedy") if scoring == "softmax" else ("noaux_tc",)
    method = raw.get("topk_method") or methods[0]
    normalised = bool(raw.get("norm_topk_prob", False))
    unknown = {
        "scoring_func": raw.get("scoring_func", scoring) != scoring,
        "topk_method": method not in methods,
        "moe_layer_freq": raw.get("moe_layer_freq", 1) != 1,
        # The family's own code and transformers read it differently.
        "norm_topk_prob": normalised and scoring == "softmax",
    }
    for name, found in unknown.items():
        if found:
            problem = f"its {name} of {raw[name]!r} is not supported for {family}"
            raise CheckpointError(path, problem, _RELEASED)
    grouped = method != "greedy"
    width = int(raw["moe_intermediate_size"])
    return ExpertsShape(
        dense_layers=int(raw["first_k_dense_replace"]),
        count=int(raw["n_routed_experts"]),
        chosen=int(raw["num_experts_per_tok"]),
        width=width,
        shared_width=width * int(raw.get("n_shared_experts") or 0),
        scoring=scoring,
        groups=int(raw["n_group"]) if grouped else 1,
        chosen_groups=int(raw["topk_group"]) if grouped else 1,
        normalised=normalised,
        factor=float(raw["routed_scaling_factor"]),
    )


def is_sound(config: ModelConfig, tensor_count: int) -> bool:
    """Whether the sizes of latent attention and experts make sense; True without them."""
    latent, experts = config.latent, config.experts
    if latent is not None:
        sizes = (latent.rank, latent.rotated, latent.unrotated, latent.value)
        if min(sizes) < 1 or latent.rotated % 2 or latent.query_rank == 0:
            return False
    if experts is None:
        return True
    if min(experts.count, experts.chosen, experts.width, experts.groups) < 1:
        return False
    # A sigmoid router looks at the two best of a group.
    least = 1 if experts.scoring == "softmax" else 2
    size = experts.count // experts.groups
    return (
        experts.count <= tensor_count
        and experts.count == size * experts.groups
        and size >= least
        and 0 < experts.chosen_groups <= experts.groups
        and experts.chosen <= size * experts.chosen_groups
        and experts.dense_layers >= 0
    )


def attention_shapes(config: ModelConfig, latent: LatentShape, at: str) -> Shapes:
    """Name -> shape of what the attention of layer `at` ("model.layers.0.") consists of."""
    hidden = config.hidden_size
    queries = config.heads * (latent.unrotated + latent.rotated)
    biased = config.attention_bias
    shapes: Shapes = {
        "kv_a_proj_with_mqa.weight": (config.head_dim, hidden),
        "kv_a_layernorm.weight": (latent.rank,),
        "kv_b_proj.weight": (config.heads * (latent.unrotated + latent.value), latent.rank),
        "o_proj.weight": (hidden, config.heads * latent.value),
    }
    if latent.query_rank is None:
        shapes["q_proj.weight"] = (queries, hidden)
    else:
        shapes["q_a_proj.weight"] = (latent.query_rank, hidden)
        shapes["q_a_layernorm.weight"] = (latent.query_rank,)
        shapes["q_b_proj.weight"] = (queries, latent.query_rank)
        if biased:
            shapes["q_a_proj.bias"] = (latent.query_rank,)
    if biased:
        shapes["kv_a_proj_with_mqa.bias"] = (config.head_dim,)
        shapes["o_proj.bias"] = (hidden,)
    return {f"{at}self_attn.{name}": shape for name, shape in shapes.items()}


def expert_shapes(config: ModelConfig, experts: ExpertsShape, at: str) -> Shapes:
    """Name -> shape of the experts of layer `at`, which has no MLP beside them."""
    hidden = config.hidden_size
    shapes: Shapes = {f"{at}mlp.gate.weight": (experts.count, hidden)}
    if experts.scoring == "sigmoid":
        shapes[f"{at}mlp.gate.e_score_correction_bias"] = (experts.count,)
    for index in range(experts.count):
        shapes |= mlp_shapes(f"{at}mlp.experts.{index}.", hidden, experts.width)
    if experts.shared_width:
        shared = f"{at}mlp.shared_experts."
        shapes |= mlp_shapes(shared, hidden, experts.shared_width, bias=config.mlp_bias)
    return shapes


def mlp_shapes(at: str, hidden: int, inner: int, *, bias: bool = False) -> Shapes:
    """Name -> shape of one gated MLP."""
    shapes: Shapes = {}
    sizes = {"gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner)}
    for name, size in sizes.items():
        shapes[f"{at}{name}_proj.weight"] = size
        if bias:
            shapes[f"{at}{name}_proj.bias"] = size[:1]
    return shapes
