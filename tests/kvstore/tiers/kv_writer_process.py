"""Writes blocks to a folder until it is killed: `python kv_writer_process.py FOLDER SEED`.

What a block holds follows from its key, so that whoever reads it can tell whether it is right.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

from kvstore.tiers.disk import DiskTier
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS

STAMP = Stamp("model", "format", 64 * 1024)
BLOCKS, BLOCK_TOKENS = 6, 3 * PAGE_TOKENS + 7
DOCUMENTS = 5
BUDGET = 4 * (BLOCKS * 4 * STAMP.page_bytes + 40_000)
"""Four documents: the fifth makes another go."""


def layout(number: int) -> DocumentLayout:
    """Document `number`; its first two blocks are those of every other one, too."""
    keys, tokens = [], []
    for index in range(BLOCKS):
        name = f"shared {index}" if index < 2 else f"{number} {index}"
        key = hashlib.sha256(name.encode()).digest()
        keys.append(key)
        tokens += [key[place % 32] + place for place in range(BLOCK_TOKENS)]
    blocks = tuple((at * BLOCK_TOKENS, (at + 1) * BLOCK_TOKENS) for at in range(BLOCKS))
    return DocumentLayout(f"document {number}", tuple(keys), blocks, tuple(tokens))


def pages_of(key: bytes) -> bytes:
    """What the pages of this block hold."""
    size = 4 * STAMP.page_bytes
    return (hashlib.shake_128(key).digest(4096) * (size // 4096 + 1))[:size]


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    tier = DiskTier(folder, STAMP, BUDGET)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        document = layout(chance.randrange(DOCUMENTS))
        tier.enrol(document)
        for key in chance.sample(document.keys, BLOCKS):
            if tier.lacks(key) and tier.room(4 * STAMP.page_bytes):
                tier.save(key, memoryview(pages_of(key)))
        if chance.random() < 0.3:
            tier.forget(f"document {chance.randrange(DOCUMENTS)}")
        if chance.random() < 0.5:
            tier.settle()


if __name__ == "__main__":
    main()
