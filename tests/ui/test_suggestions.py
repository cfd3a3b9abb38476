"""What the page offers to ask is answered right: on the samples, whatever the page's language."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ui.suggestions import SAMPLE_SUGGESTIONS, SUGGESTIONS

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ENGLISH, CHINESE = "supply-agreement.en", "equipment-contract.zh"
# What the first quote must say; None: that there is no answer.
EXPECTED: dict[str, dict[str, str | None]] = {
    ENGLISH: {
        "How quickly must an invoice be paid?": "within 42 days",
        "How large is the performance bond?": "GBP 2,430,000",
        "What does a trip coil cost?": "Trip coil, 110 V DC | 104.20",
        "What is the price of a 36 kV incoming panel?": None,
        "How can the contract be terminated for convenience?": "180 days' written notice",
        "Within how many days must invoices be paid?": "within 42 days",
        "Which law governs the contract?": "law of England and Wales",
        "提前多少日通知可以解除合同？": "180 days' written notice",
        "质量保证期是多久？": "36 months",
        "适用哪国法律？": "law of England and Wales",
    },
    CHINESE: {
        "合同总价是多少？": "68,750,000.00元",
        "发生重大故障后多久要恢复生产？": "48小时内恢复生产",
        "逾期交货每逾期一日支付多少违约金？": "千分之二",
        "第三条生产线什么时候交货？": None,
        "提前多少日通知可以解除合同？": "提前45日书面通知",
        "质量保证期是多久？": "24个月",
        "适用哪国法律？": "中华人民共和国法律",
    },
}


@pytest.mark.parametrize("stem", [ENGLISH, CHINESE])
def test_every_suggestion_is_answered_right_on_the_sample(scripted_server: str, stem: str) -> None:
    language = "en" if stem == ENGLISH else "zh"
    offered = SAMPLE_SUGGESTIONS[stem] + SUGGESTIONS[language]  # type: ignore[index]
    assert set(offered) <= EXPECTED[stem].keys()
    with httpx.Client(base_url=f"{scripted_server}/api/v1", trust_env=False, timeout=120) as api:
        path = SAMPLES / f"{stem}.pdf"
        reply = api.post("/documents", files={"file": (path.name, path.read_bytes())})
        document = reply.raise_for_status().json()["id"]
        end = time.monotonic() + 240
        while not (state := api.get(f"/documents/{document}").raise_for_status().json())["askable"]:
            assert state["status"] in ("queued", "in_progress") and time.monotonic() < end, state
            time.sleep(0.2)
        for question, expected in EXPECTED[stem].items():
            answer = asked(api, document, question)
            if expected is None:
                assert answer["status"] == "not_found", question
            else:
                first = answer["answer"].partition("[1]")[0]
                assert expected in first, f"{question}: {first}"


def asked(api: httpx.Client, document: str, question: str) -> dict[str, Any]:
    """The whole answer."""
    body = {"question": question, "document_ids": [document]}
    found: dict[str, Any] = api.post("/answers", json=body).raise_for_status().json()
    return found
