"""Times block reading attention on a GPU beside dense attention and FlexAttention with its mask.

    PYTHONPATH=. python scripts/bench_block_attention.py --out results.json

One layer, batch 1, 524,288 tokens in blocks of 4,096 that see 64 sinks and 64 anchors of every
earlier block. Floating-point operations are those of the scores that the mask leaves, 4 times the
head size for each and query head, whatever a kernel computes beyond them. A time is the median of
the rounds, taken with CUDA events around the whole operation, with the rotation and laying out of
keys; peers get theirs rotated before. Errors are of the first, second and last block against the
reference.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import triton

from backend.ops.block_attention import Implementation, Tiles
from backend.ops.block_attention.pack import pack
from scripts.block_attention_peers import time_dense, time_flex
from scripts.block_attention_problem import (
    ANCHORS,
    BLOCK,
    SHAPES,
    SINKS,
    TOKENS,
    Shape,
    line,
    make_problem,
    seconds,
)

TILES: dict[int, list[Tiles]] = {
    64: [Tiles(128, 128, 8, 3), Tiles(128, 64, 4, 3), Tiles(64, 64, 4, 4)],
    128: [Tiles(128, 128, 8, 2), Tiles(128, 128, 8, 3), Tiles(128, 64, 8, 3), Tiles(64, 64, 4, 3)],
}
"""What --sweep times of the Triton kernel, by head size."""


def ceilings() -> dict[str, float]:
    """bf16 product in TFLOP/s; device copy in GB/s, read and written bytes."""
    a, b = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.bfloat16).unbind(0)
    product = sorted(seconds(lambda: a @ b, 21, 5))[10]
    source = torch.randn(1 << 30, device="cuda")
    target = torch.empty_like(source)
    copy = sorted(seconds(lambda: target.copy_(source), 11, 3))[5]
    return {
        "bf16_gemm_tflops": round(2 * 8192**3 / product / 1e12, 1),
        "copy_gbytes_per_s": round(2 * source.nbytes / copy / 1e9, 1),
    }


def ours(shape: Shape, sweep: bool) -> dict[str, object]:
    """Our kernels on one shape."""
    problem = make_problem(shape)
    packing = seconds(
        lambda: pack(problem.k, problem.v, problem.plan, problem.extra, problem.cos, problem.sin),
        5,
        2,
    )
    found: dict[str, object] = {"packing alone": line(packing, 0)}
    runs: list[tuple[str, Implementation, Tiles | None]] = [
        ("hopper", "hopper", None),
        ("triton", "triton", None),
    ]
    if sweep:
        runs += [(f"triton {tiles}", "triton", tiles) for tiles in TILES[shape.width]]
    for label, impl, tiles in runs:
        error = problem.error(problem.run(impl, tiles))

        def call(impl: Implementation = impl, tiles: Tiles | None = tiles) -> torch.Tensor:
            return problem.run(impl, tiles)

        found[label] = line(seconds(call, 7, 1), problem.flops, error)
    return found


def in_e4m3(shape: Shape) -> dict[str, object]:
    """The Triton kernel with products in e4m3, by its tiles. Errors are against the reference of
    16-bit inputs, so that they are what e4m3 costs."""
    problem = make_problem(shape)
    found: dict[str, object] = {}
    for tiles in TILES[shape.width]:

        def call(tiles: Tiles = tiles) -> torch.Tensor:
            return problem.run("triton", tiles, fp8=True)

        error = problem.error(call())
        found[f"triton e4m3 {tiles}"] = line(seconds(call, 7, 1), problem.flops, error)
    return found


def environment() -> dict[str, object]:
    """Hardware and versions."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "memory_bytes": properties.total_memory,
        "processors": properties.multi_processor_count,
        "capability": f"{properties.major}.{properties.minor}",
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
    }


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default="ours,flex,dense", help="also e4m3")
    parser.add_argument("--shapes", default="0,1,2,3", help="indices of the shapes")
    parser.add_argument("--sweep", action="store_true", help="other tile sizes too")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    results: dict[str, dict[str, object]] = {}
    record = {
        "bench": "block_attention",
        "command": " ".join(sys.argv),
        "environment": environment(),
        "config": {
            "tokens": TOKENS,
            "block": BLOCK,
            "anchors": ANCHORS,
            "sinks": SINKS,
            "dtype": "bfloat16",
            "layers": 1,
            "batch": 1,
        },
        "ceilings": ceilings(),
        "results": results,
    }
    parts: dict[str, Callable[[Shape], dict[str, object]]] = {
        "ours": lambda shape: ours(shape, arguments.sweep),
        "e4m3": in_e4m3,
        "flex": lambda shape: {"flex": time_flex(shape)},
        "dense": lambda shape: {"cudnn dense": time_dense(shape)},
    }
    for index in map(int, arguments.shapes.split(",")):
        shape = SHAPES[index]
        results[shape.name] = {}
        for part in arguments.parts.split(","):
            results[shape.name] |= parts[part](shape)
            torch.cuda.empty_cache()
            arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        for label, figures in results[shape.name].items():
            print(shape.name, label, figures, flush=True)


if __name__ == "__main__":
    main()
