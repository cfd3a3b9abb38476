"""How long a thread keeps the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.services import open_services
from app.settings import Settings
from app.thread_turns import turns_of


def test_turns_are_as_before_when_the_block_ends() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="inside"), turns_of(0.002):
        assert sys.getswitchinterval() == pytest.approx(0.002)
        raise ValueError("inside")
    assert sys.getswitchinterval() == before


@pytest.mark.parametrize("serve", [True, False])
def test_a_server_has_short_turns_and_a_command_its_own(
    tmp_path: Path, make_engine: Any, serve: bool
) -> None:
    before = sys.getswitchinterval()
    settings = Settings(data_dir=tmp_path, thread_turn_s=0.0007)
    with open_services(settings, engine=make_engine(), serve=serve):
        expected = 0.0007 if serve else before
        assert sys.getswitchinterval() == pytest.approx(expected)
    assert sys.getswitchinterval() == before


def test_a_turn_takes_some_time() -> None:
    with pytest.raises(ValidationError):
        Settings(thread_turn_s=0)
