"""What KV formats cost a processor: one block written to pages, one question's pages gathered.
Prints one JSON object; milliseconds of one thread's processor time, least and median.

    python scripts/kv_format_speed.py --layers 30 --kv-heads 3 --head-dim 64 --dtype bfloat16
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

from kvstore.formats import FORMATS, page_format
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable


def milliseconds(run: Callable[[], object], repeats: int) -> dict[str, float]:
    """Of this thread, after one run that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        run()
        times.append((time.thread_time() - began) * 1e3)
    return {"least": round(min(times), 1), "median": round(statistics.median(times), 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--kv-heads", type=int, default=3)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--block", type=int, default=512, help="tokens of the block")
    parser.add_argument("--tokens", type=int, default=1500, help="tokens of the page list")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shape = KVShape(args.layers, args.kv_heads, args.head_dim)
    dtype = getattr(torch, args.dtype)
    torch.manual_seed(1)
    keys, values = torch.randn((2, args.block, args.kv_heads, args.head_dim), dtype=dtype)
    count = -(-args.tokens // PAGE_TOKENS)
    record = {}
    for name in FORMATS:
        pool = PagePool(shape, max(count, args.block), dtype, form=page_format(name, dtype))
        pages = pool.allocate(max(count, -(-args.block // PAGE_TOKENS)))
        table = PageTable(
            tuple(
                PageRef(page, 0, min(PAGE_TOKENS, args.tokens - at * PAGE_TOKENS))
                for at, page in enumerate(pages[:count])
            )
        )

        def write(pool: PagePool = pool, pages: tuple[int, ...] = pages) -> None:
            for layer in range(args.layers):
                pool.write(pages, layer, keys, values)

        def gather(pool: PagePool = pool, table: PageTable = table) -> None:
            pool.gather(table)

        pool.data.view(torch.uint8).zero_()
        record[name] = {
            "bytes_per_token": pool.page_bytes / PAGE_TOKENS,
            "write_ms": milliseconds(write, args.repeats),
            "gather_ms": milliseconds(gather, args.repeats),
        }
    json.dump({"settings": vars(args), "formats": record}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
