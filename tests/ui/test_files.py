from __future__ import annotations

from pathlib import Path

import pytest

from ui.files import named_files


def test_files_get_their_own_names() -> None:
    stored = ["/uploads/a1/contract2024.pdf", "/uploads/b2/x.txt"]
    assert named_files(stored, ["合同（2024）.pdf", "../x.txt"]) == [
        (Path("/uploads/a1/contract2024.pdf"), "合同（2024）.pdf"),
        (Path("/uploads/b2/x.txt"), "../x.txt"),
    ]


@pytest.mark.parametrize("names", [None, [], ["a", "b"], "a", [None], [""], [7]])
def test_names_that_do_not_fit_give_way_to_the_stored_ones(names: object) -> None:
    assert named_files(["/uploads/a1/x.txt"], names) == [(Path("/uploads/a1/x.txt"), "x.txt")]
