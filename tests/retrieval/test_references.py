"""Clauses that a quote refers to."""

from __future__ import annotations

import pytest

from retrieval.references import find_references


@pytest.mark.parametrize(
    ("quote", "numbers"),
    [
        ("Subject to Section 12.3, the Supplier is liable.", ("§12.3",)),
        ("as provided in Sections 5.1, 5.2(a) and 7 of this Agreement", ("§5.1", "§5.2(a)", "§7")),
        ("under clause 4 within 30 days", ("§4",)),
        ("依照本合同第十二条的约定", ("§12",)),
        ("按照第五条和第七条处理", ("§5", "§7")),
        # Its own number, statutes, other contracts.
        ("Section 5. The price is fixed.", ()),
        ("as required by Section 355 of the Delaware Corporation Code", ()),
        ("as defined in Section 2 of the Supply Agreement", ()),
        ("依照《民法典》第五百八十五条", ()),
        ("依照合同法第五十二条", ()),
        ("原合同第二条修改为", ()),
        ("within 30 days after 1 March 2024", ()),
    ],
)
def test_references_to_the_own_contract(quote: str, numbers: tuple[str, ...]) -> None:
    assert find_references(quote) == numbers
