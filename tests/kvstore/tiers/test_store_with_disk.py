"""Random sequences of all that may happen to blocks, in the pool, in host memory and on the disk,
against a model in which a block is simply right or not there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from kvstore.errors import PinRefused, PoolExhausted
from kvstore.formats import FORMATS, FormatName, Part, page_format
from kvstore.keys import block_key
from kvstore.pool import page_bytes
from kvstore.store import PIN_SHARE, KVStore
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.manifest import document_name
from kvstore.tiers.memory import MemoryTier
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS, KVShape

SHAPE = KVShape(layers=1, kv_heads=1, head_dim=4)
PAGES = 8
PARTS: tuple[Part, Part] = (0, 1)
TIERS = ("host", "aged", "disk")
BUDGET = 3 * 14_000
"""Of the disk: two or three documents with their headers."""
HOST_PAGES = 6
LENGTHS = (64, 100, 130, 20, 64, 65)
TEXTS = {
    "v1": ("o", (0, 1, 2)),
    "v2": ("o", (0, 3, 2)),
    "theirs": ("p", (0, 1, 2)),
    "twice": ("o", (4, 4, 5)),
    "long": ("p", (5, 4, 3, 2)),
}
"""Owner and texts of the blocks of each document."""


def layout(name: str) -> DocumentLayout:
    owner, texts = TEXTS[name]
    keys, blocks, tokens = [], [], list[int]()
    for text in texts:
        ids = tuple(text * 1000 + place for place in range(LENGTHS[text]))
        keys.append(block_key(model="m", kv_format="f", owner=owner, sinks=(), token_ids=ids))
        blocks.append((len(tokens), len(tokens) + len(ids)))
        tokens += ids
    return DocumentLayout(name, tuple(keys), tuple(blocks), tuple(tokens))


LAYOUTS = {name: layout(name) for name in TEXTS}
NAMES = st.sampled_from(sorted(TEXTS))


def contents(key: bytes, tokens: int) -> torch.Tensor:
    """Keys [tokens, kv_heads, head_dim], as if the model had read the block; its values are the
    negative."""
    generator = torch.Generator().manual_seed(int.from_bytes(key[:7]))
    return torch.rand((tokens, SHAPE.kv_heads, SHAPE.head_dim), generator=generator)


def kept(form: FormatName, rows: torch.Tensor, part: Part) -> torch.Tensor:
    """Rows [tokens, kv_heads, head_dim] as pages in this format give them back."""
    tokens = rows.shape[0]
    padded = torch.cat((rows, rows[-1:].expand(-tokens % PAGE_TOKENS, -1, -1)))
    paged = padded.transpose(0, 1).unflatten(1, (-1, PAGE_TOKENS))
    codec = page_format(form, torch.float32)
    back = codec.decode(codec.encode(paged, part), part, SHAPE.head_dim, torch.float32)
    return back.flatten(1, 2)[:, :tokens].transpose(0, 1)


def size_of(form: FormatName) -> int:
    return page_bytes(SHAPE, page_format(form, torch.float32))


def host_form(form: FormatName, host: str, choice: int) -> FormatName | None:
    """The format of host memory behind a pool in `form`; None: there is no host memory."""
    smaller = [aged for aged in FORMATS if size_of(aged) < size_of(form)]
    if host == "aged" and smaller:
        return smaller[choice % len(smaller)]
    return None if host == "none" else form


class StoreMachine(RuleBasedStateMachine):
    """`held`: keys with the holds that are to be undone. `harmed`: files were damaged. `now`: the
    time by which pins end. `steps` and the blocks that came back from each tier (`hits`) are those
    of all runs."""

    steps = 0
    hits = Counter[str]()

    def __init__(self) -> None:
        super().__init__()
        self.room = tempfile.TemporaryDirectory(prefix="kv-machine-")
        self.folder = Path(self.room.name)
        self.enrolled: set[str] = set()
        self.held: list[bytes] = []
        self.harmed = False
        self.now = 0.0
        self.pinned: dict[str, float] = {}
        self.expected: dict[tuple[bytes, Part, bool], torch.Tensor] = {}

    @initialize(
        form=st.sampled_from(FORMATS),
        host=st.sampled_from(("same", "aged", "none")),
        choice=st.integers(0, 9),
    )
    def start_in(self, form: FormatName, host: str, choice: int) -> None:
        self.form, self.host_form = form, host_form(form, host, choice)
        # What is on the disk doesn't age.
        self.attached = host != "aged" or choice % 4 == 0
        self.start()

    def start(self) -> None:
        codec = page_format(self.form, torch.float32)
        self.store = KVStore(SHAPE, PAGES, torch.float32, form=codec, clock=lambda: self.now)
        if self.host_form is not None:
            aged = page_format(self.host_form, torch.float32)
            budget = HOST_PAGES * page_bytes(SHAPE, aged)
            self.store.attach_memory(MemoryTier(self.store.pool, budget, aged))
        stamp = Stamp("model", codec.name, page_bytes(SHAPE, codec))
        self.disk = DiskTier(self.folder, stamp, BUDGET)
        if self.attached:
            self.store.attach(self.disk)
        self.lengths: dict[bytes, int] = {}

    def teardown(self) -> None:
        self.disk.close()
        self.room.cleanup()

    @rule(name=NAMES)
    def share(self, name: str) -> None:
        """A document is given, again perhaps; its blocks may be there as another's."""
        self.store.enrol(name, LAYOUTS[name].keys, LAYOUTS[name])
        self.enrolled.add(name)

    @rule(name=NAMES, place=st.integers(0, 3))
    def read(self, name: str, place: int) -> None:
        """Have a block in the pool: from there, from the disk, or by reading it."""
        document = LAYOUTS[name]
        place %= len(document.keys)
        key, (first, last) = document.keys[place], document.blocks[place]
        tokens = document.token_ids[first:last]
        on_disk, in_memory = self.disk.contains(key), self.in_memory(key)
        with contextlib.suppress(PoolExhausted), self.pins_respected(key):
            if self.store.lookup(key, tokens) is not None:
                return
            if (block := self.store.restore(key, tokens)) is not None:
                near = in_memory and self.host_form == self.form
                type(self).hits["host" if near else "disk" if block.exact else "aged"] += 1
                assert block.exact or not on_disk or self.harmed
                return
            assert not in_memory
            assert not on_disk or self.harmed or self.disk.counters.unsaved
            pages = self.store.reserve(len(tokens))
            self.store.pool.write(pages, 0, contents(key, len(tokens)), -contents(key, len(tokens)))
            self.store.commit(key, tokens, pages)
            return
        held = {one for one in self.held if self.store.contains(one)}
        taken = sum(len(self.store.block(one).pages) for one in held)
        assert PAGES - taken < -(-len(tokens) // PAGE_TOKENS), "only held blocks may be in the way"

    def in_memory(self, key: bytes) -> bool:
        return self.store.memory is not None and key in self.store.memory

    @contextlib.contextmanager
    def pins_respected(self, new: bytes = b"") -> Iterator[None]:
        """Pinned blocks go only when no other could."""
        live = [name for name, end in self.pinned.items() if end > self.now]
        pinned = {key for name in live for key in LAYOUTS[name].keys}
        before = {key for key in pinned if self.store.contains(key)}
        yield
        if any(not self.store.contains(key) for key in before):
            others = {*self.store._blocks} - pinned - {*self.held, new}
            assert not others, "a pinned block went, and these were not asked"

    @rule(name=NAMES, ttl=st.integers(1, 5))
    def pin(self, name: str, ttl: int) -> None:
        if name not in self.enrolled:
            with pytest.raises(PinRefused, match="not given"):
                self.store.pin(name, ttl)
            return
        live = {one for one, end in self.pinned.items() if end > self.now} | {name}
        pages = {
            key: -(-(last - first) // PAGE_TOKENS)
            for one in live
            for key, (first, last) in zip(LAYOUTS[one].keys, LAYOUTS[one].blocks, strict=True)
        }
        try:
            self.store.pin(name, ttl)
        except PinRefused:
            assert sum(pages.values()) > PAGES * PIN_SHARE
            return
        assert sum(pages.values()) <= PAGES * PIN_SHARE
        self.pinned[name] = self.now + ttl

    @rule(name=NAMES)
    def unpin(self, name: str) -> None:
        self.store.unpin(name)
        self.pinned.pop(name, None)

    @rule(passed=st.integers(1, 3))
    def time_goes_on(self, passed: int) -> None:
        self.now += passed

    @rule(name=NAMES)
    def take_in(self, name: str) -> None:
        """What an upload does: all of a document is read, and written behind it."""
        self.share(name)
        for place in range(len(LAYOUTS[name].keys)):
            self.read(name, place)
            self.store.spill()

    @rule(name=NAMES)
    def ask_after_restart(self, name: str) -> None:
        """Whatever is on the disk by now is what a new process finds."""
        self.settle()
        self.restart()
        self.take_in(name)

    @rule(tokens=st.integers(1, 3 * PAGE_TOKENS))
    def allocate_and_cancel(self, tokens: int) -> None:
        with contextlib.suppress(PoolExhausted), self.pins_respected():
            pages = self.store.reserve(tokens)
            # Whatever a half-read block leaves behind must not reach the disk.
            self.store.pool.data.view(torch.uint8)[list(pages)] = 255
            self.store.abandon(pages)

    @rule(name=NAMES)
    def fetch_and_cancel(self, name: str) -> None:
        """A question asks for blocks and goes away."""
        keys = LAYOUTS[name].keys
        ready = self.store.fetch(keys)
        assert all(key in keys for key in ready)

    @rule(name=NAMES)
    def hold(self, name: str) -> None:
        for key in LAYOUTS[name].keys[:1]:
            if self.store.contains(key):
                self.store.hold(key)
                self.held.append(key)

    @rule()
    def let_go(self) -> None:
        while self.held:
            self.store.unhold(self.held.pop())

    @rule()
    def spill(self) -> None:
        self.store.spill()

    @rule(name=NAMES)
    def free(self, name: str) -> None:
        """The document is deleted, with its files."""
        self.store.forget_document(name)
        self.pinned.pop(name, None)
        if name in self.enrolled:
            self.enrolled.discard(name)
            others = {key for one in self.enrolled for key in LAYOUTS[one].keys}
            assert not any(self.in_memory(key) for key in {*LAYOUTS[name].keys} - others)
        assert self.disk.settle()
        assert list(self.folder.glob(f"{document_name(name)}.*")) == []

    @rule()
    def settle(self) -> None:
        assert self.disk.settle()
        while self.store.spill():
            assert self.disk.settle()
        for name in self.enrolled:
            for key in LAYOUTS[name].keys:
                if self.store.contains(key) and self.store.block(key).exact:
                    kept = self.disk.contains(key) or self.disk.counters.unsaved
                    # After a damage a block may be in the pool alone until it is evicted.
                    assert kept or self.harmed or not self.attached

    @rule()
    def restart(self) -> None:
        self.let_go()
        self.disk.close()
        self.enrolled.clear()
        self.pinned.clear()
        self.start()

    @rule(names=st.sets(NAMES))
    def sweep(self, names: set[str]) -> None:
        self.disk.keep(names)
        assert self.disk.settle()
        left = {path.name.partition(".")[0] for path in self.folder.glob("*.json")}
        assert left <= {document_name(name) for name in names | self.enrolled}

    @rule(place=st.floats(0.1, 1), chosen=st.integers(0, 9))
    def damage(self, place: float, chosen: int) -> None:
        assert self.disk.settle()
        files = sorted(self.folder.glob("*.safetensors"))
        if files:
            path = files[chosen % len(files)]
            at = int(place * (path.stat().st_size - 1))
            with path.open("r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 0x10]))
            self.harmed = True

    @invariant()
    def all_is_right(self) -> None:
        type(self).steps += 1
        self.store.check_integrity()
        assert self.disk.counters.bytes_held <= BUDGET
        for key, block in self.store._blocks.items():
            count = len(block.token_ids)
            locations = [(block.pages[at // 64], at % 64) for at in range(count)]
            for part, got in zip(PARTS, self.store.pool.gather_tokens(locations), strict=True):
                if (key, part, block.exact) not in self.expected:
                    rows = kept(self.form, contents(key, count) * (1 - 2 * part), part)
                    if not block.exact:
                        assert self.host_form is not None
                        # Rounded once, however often it came and went.
                        rows = kept(self.form, kept(self.host_form, rows, part), part)
                    self.expected[key, part, block.exact] = rows.transpose(0, 1)[None]
                assert torch.equal(got, self.expected[key, part, block.exact])


def run(monkeypatch: pytest.MonkeyPatch, examples: int, *, fresh: bool) -> int:
    """Steps that were made: always the same ones unless `fresh`."""
    # Nobody pulls the plug here; syncing is what test_kv_kills is about.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    StoreMachine.steps = 0
    StoreMachine.hits.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        StoreMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=50, derandomize=not fresh, deadline=None
        ),
    )
    return StoreMachine.steps


def test_blocks_are_right_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, 15, fresh=False) > 500


@pytest.mark.slow
def test_blocks_are_right_or_not_there_in_ten_thousand_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = run(monkeypatch, 300, fresh=True)
    assert steps >= 10_000
    assert all(StoreMachine.hits[tier] > steps // 200 for tier in TIERS), "each had its part"
