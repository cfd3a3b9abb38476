"""What host memory behind the pool costs a processor: a block kept when it is evicted, and brought
back, as it was and aged, beside the same from the disk's files. Prints one JSON object;
milliseconds of one thread's processor time, least and median, and how many blocks fit.

    python scripts/kv_host_speed.py --layers 30 --kv-heads 3 --head-dim 64 --dtype bfloat16
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch

from kvstore.formats import FORMATS, FormatName, page_format
from kvstore.pool import page_bytes
from kvstore.store import KVStore
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.memory import MemoryTier
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS, KVShape

KEY = b"block"


def milliseconds(run: Callable[[], object], before: Callable[[], object], repeats: int) -> object:
    """Of this thread; `before` each run, which is not counted, and once more at first."""
    times = []
    for _ in range(repeats + 1):
        before()
        began = time.thread_time()
        run()
        times.append((time.thread_time() - began) * 1e3)
    return {"least": round(min(times[1:]), 1), "median": round(statistics.median(times[1:]), 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--kv-heads", type=int, default=3)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--block", type=int, default=512, help="tokens of the block")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shape = KVShape(args.layers, args.kv_heads, args.head_dim)
    dtype = getattr(torch, args.dtype)
    ids = tuple(range(args.block))
    pages = -(-args.block // PAGE_TOKENS)
    torch.manual_seed(1)
    rows = torch.randn((2, args.block, args.kv_heads, args.head_dim), dtype=dtype)

    def read_block(store: KVStore) -> None:
        """As if the model had, and nothing of it were here."""
        store.forget(KEY)
        places = store.reserve(args.block)
        for layer in range(args.layers):
            store.pool.write(places, layer, rows[0], rows[1])
        store.commit(KEY, ids, places)

    def evict(store: KVStore) -> None:
        store.abandon(store.reserve(store.pool.total * PAGE_TOKENS))

    record: dict[str, dict[str, object]] = {}
    names: tuple[FormatName | Literal["none"], ...] = ("none", *FORMATS)
    for name in names:
        form = None if name == "none" or name == "auto" else page_format(name, dtype)
        store = KVStore(shape, pages, dtype)
        if form is not None and page_bytes(shape, form) >= store.pool.page_bytes:
            continue
        size = store.pool.page_bytes if form is None else page_bytes(shape, form)
        if name != "none":
            store.attach_memory(MemoryTier(store.pool, 4 * pages * size, form))

        def before_evict(store: KVStore = store) -> None:
            read_block(store)

        def before_restore(store: KVStore = store) -> None:
            read_block(store)
            evict(store)

        def drop(store: KVStore = store) -> None:
            evict(store)

        def restore(store: KVStore = store) -> None:
            if store.restore(KEY, ids) is None:
                raise RuntimeError("the block did not come back")

        record[name] = {
            "blocks_in_1_gb": 10**9 // (pages * size),
            "evict_ms": milliseconds(drop, before_evict, args.repeats),
        }
        if name != "none":
            record[name]["restore_ms"] = milliseconds(restore, before_restore, args.repeats)
    record["disk"] = {"restore_ms": disk_restore(shape, dtype, ids, rows, args.repeats)}
    json.dump({"settings": vars(args), "kept": record}, sys.stdout, indent=1)
    sys.stdout.write("\n")


def disk_restore(
    shape: KVShape, dtype: torch.dtype, ids: tuple[int, ...], rows: torch.Tensor, repeats: int
) -> object:
    """Wall time, since two threads work; the file is in the operating system's cache."""
    pages = -(-len(ids) // PAGE_TOKENS)
    store = KVStore(shape, pages, dtype)
    with tempfile.TemporaryDirectory() as folder:
        disk = DiskTier(Path(folder), Stamp("m", "f", store.pool.page_bytes), 1 << 30)
        store.attach(disk)
        try:
            places = store.reserve(len(ids))
            for layer in range(shape.layers):
                store.pool.write(places, layer, rows[0], rows[1])
            store.commit(KEY, ids, places)
            store.enrol("d", (KEY,), DocumentLayout("d", (KEY,), ((0, len(ids)),), ids))
            while store.spill():
                disk.settle()
            disk.settle()
            times = []
            for _ in range(repeats):
                store.abandon(store.reserve(store.pool.total * PAGE_TOKENS))
                began = time.perf_counter()
                if store.restore(KEY, ids) is None:
                    raise RuntimeError("the block did not come back")
                times.append((time.perf_counter() - began) * 1e3)
        finally:
            disk.close()
    return {"least": round(min(times), 1), "median": round(statistics.median(times), 1)}


if __name__ == "__main__":
    main()
