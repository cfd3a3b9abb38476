"""Runs tokens through a decoder with plain causal attention, for what layers see on the way."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from backend.layers.rope import Rope, rotate
from backend.models.decoder import Decoder
from backend.ops.prefix_attention import prefix_attention

CALIBRATION = """\
This Supply and Services Agreement is made on 1 March 2024 between Northwind Components Limited, a
company incorporated in England with number 04512377 ("Supplier"), and Aurora Rail GmbH ("Buyer").
1. Definitions. "Business Day" means a day other than a Saturday, Sunday or public holiday.
12.3 Subject to Section 12.4, the total liability of either party shall not exceed the greater of
USD 2,500,000.00 and one hundred and twenty percent (120%) of the Charges paid in the preceding
twelve (12) months, except for (a) death or personal injury; (b) fraud; and (c) any breach of
Clause 9 (Confidentiality).
14.1 The Buyer may terminate this Agreement on not less than ninety (90) days' written notice.
第十二条 违约责任：乙方逾期交货的，每逾期一日，应按照逾期部分货款的万分之五
向甲方支付违约金，但违约金总额不超过合同总价的百分之十。
甲方应于收到发票后三十日内支付人民币1,500,000.00元（大写：壹佰伍拾万元整）。
"""
"""What activations are observed on: contract prose, definitions, figures, dates; both languages."""


@torch.inference_mode()
def run_tokens(decoder: Decoder, token_ids: Sequence[int]) -> None:
    """One forward pass over the tokens; nothing is kept."""
    cos, sin = (table[:, None] for table in Rope(decoder.config).tables(0, len(token_ids)))

    def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        new, kv_heads, width = v.shape
        rotated = rotate(qk, cos, sin)
        q, keys = rotated[:, :-kv_heads], rotated[:, -kv_heads:].transpose(0, 1)
        grouped = q.view(new, kv_heads, -1, width).permute(1, 2, 0, 3)
        out = prefix_attention(
            grouped.contiguous(), keys.contiguous(), v.transpose(0, 1).contiguous(), impl="tiled"
        )
        return out.permute(2, 0, 1, 3).reshape(new, -1)

    decoder.forward(torch.tensor(token_ids), attend)
