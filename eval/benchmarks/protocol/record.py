"""The record of a run of the protocol."""

from __future__ import annotations

from dataclasses import asdict

from eval.benchmarks.first_token import CLOCK
from eval.benchmarks.protocol.measure import Measured, ProtocolPlan
from eval.benchmarks.protocol.summary import summarise
from eval.benchmarks.protocol.types import Fields
from eval.benchmarks.record import make_record


def protocol_record(plan: ProtocolPlan, measured: Measured, device: str) -> Fields:
    """Figures, conditions, and every request's times."""
    return make_record(
        "protocol",
        device=device,
        config={
            **asdict(plan.shape),
            "arms": {arm.name: {**asdict(arm), "rounds": plan.rounds_of(arm)} for arm in plan.arms},
            "cells": plan.cells,
            "evidence": plan.evidence,
            "limit_s": {arm.name: plan.limit_of(arm) for arm in plan.arms},
            "clock": CLOCK,
            "engines": measured.engines,
        },
        rounds=[cell.fields() for cell in measured.cells],
        results={**summarise(measured.cells), "failures": measured.failures},
    )
