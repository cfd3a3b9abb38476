import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from retrieval.types import Language

SCRIPT = Path(__file__).parents[3] / "scripts" / "check_metrics.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("torchmetrics")
    spec = importlib.util.spec_from_file_location("check_metrics", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up there.
    monkeypatch.setitem(sys.modules, "check_metrics", module)
    spec.loader.exec_module(module)
    return module


def test_every_comparison_agrees(
    script: ModuleType, pairs: dict[Language, list[tuple[str, str]]]
) -> None:
    for language, found in pairs.items():
        agree = script.compare([script.Pair(language, *pair) for pair in found], 0)["agree"]
        musts = {name: n for name, n in agree.items() if not name.startswith("(raw text)")}
        assert len(musts) >= 3
        assert set(musts.values()) == {len(found)}, musts
