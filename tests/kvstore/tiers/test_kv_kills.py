"""kill -9 while pages are written: whatever is found afterwards is right."""

from __future__ import annotations

import importlib.util
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from kvstore.tiers.disk import DiskTier

KILLS = 50
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("kv_writer_process.py")
_spec = importlib.util.spec_from_file_location("kv_writer_process", PROGRAM)
assert _spec is not None and _spec.loader is not None
WRITER = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(WRITER)


def right_blocks(folder: Path) -> int:
    """Takes every block that is there; fails at a wrong one. How many there were."""
    tier = DiskTier(folder, WRITER.STAMP, WRITER.BUDGET)
    found = 0
    try:
        tier.check_integrity()
        for number in range(WRITER.DOCUMENTS):
            document = WRITER.layout(number)
            for key, (first, last) in zip(document.keys, document.blocks, strict=True):
                if tier.contains(key):
                    pages = tier.take(key, document.token_ids[first:last])
                    assert pages is not None, "what the manifest names is whole"
                    assert bytes(pages) == WRITER.pages_of(key)
                    found += 1
        assert tier.counters.refused == {}, "a kill leaves nothing to refuse"
    finally:
        tier.close()
    names = {path.stem for path in folder.glob("*.json")}
    assert {path.stem for path in folder.glob("*.safetensors")} == names
    return found


def test_a_killed_writer_never_leaves_a_wrong_page(tmp_path: Path) -> None:
    chance = random.Random(17)
    found = []
    for turn in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path), str(turn)],
            cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL, "it was still writing"
        found.append(right_blocks(tmp_path))
    assert max(found) >= 6
    assert len(set(found)) > 1, "the kills came at different points"
