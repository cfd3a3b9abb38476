"""`fineprint bench mixed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, ModelOption, emit, note, reporting
from eval.benchmarks.options import OutOption, TextOption, give_out

UrlOption = Annotated[
    str | None,
    typer.Option(help="Server to send to: Fineprint's address, or an API with its /v1."),
]


def mixed(
    url: UrlOption = None,
    serve: Annotated[bool, typer.Option("--serve", help="Start a server for this run.")] = False,
    api: Annotated[
        str, typer.Option(help="rest (Fineprint) or openai (any such server).")
    ] = "rest",
    model: ModelOption = None,
    preset: Annotated[
        str, typer.Option(help="protocol (50 requests, 4K-512K) or cpu (small, minutes).")
    ] = "protocol",
    requests: Annotated[int | None, typer.Option(min=1, help="Requests of a load.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Tokens: 1K,2K,16K, or 4K-512K for each doubling.")
    ] = None,
    long_share: Annotated[
        float | None, typer.Option(help="Share of requests with the longest document.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests at a time.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests per second (Poisson), instead of --concurrency.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds; results are medians.")] = None,
    hit_share: Annotated[
        float | None, typer.Option(help="Share of the mixed load on documents asked before.")
    ] = None,
    cells: Annotated[str, typer.Option(help="cold, mixed or both.")] = "cold,mixed",
    output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest answer, where the API takes a limit.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes the load [a new one].")] = None,
    text: TextOption = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Model whose tokens lengths are counted in [the settings'].")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", help="Seconds a request may take.")
    ] = 900,
    key_file: Annotated[Path | None, typer.Option(help="File with the API key to send.")] = None,
    write_load: Annotated[
        Path | None, typer.Option(help="Write the first round's load here and send nothing.")
    ] = None,
    load: Annotated[Path | None, typer.Option(help="Send the load of this file.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="cold: fail if the load of --load met any hit.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the documents there.")] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Many documents of different lengths at once: first-token times, cold and mixed."""
    with reporting(as_json):
        from eval.benchmarks.mixed.benchmark import Conditions
        from eval.benchmarks.mixed.choices import (
            choose_cells,
            choose_claim,
            choose_shape,
            choose_target,
            text_files,
        )
        from eval.benchmarks.mixed.session import (
            Material,
            measure_file,
            measure_generated,
            save_load,
        )
        from eval.benchmarks.mixed.tables import show_mixed

        shape = choose_shape(
            preset,
            requests=requests,
            lengths=lengths,
            long_share=long_share,
            concurrency=concurrency,
            rate=rate,
            rounds=rounds,
            hit_share=hit_share,
            output_tokens=output_tokens,
            seed=seed,
        )
        if write_load is not None:
            material = Material(text_files(text), tokenizer)
            count = save_load(write_load, shape, material, choose_cells(cells))
            body = {"load": str(write_load), "requests": count, "seed": shape.seed}
            emit(body) if as_json else note(f"{count} requests written to {write_load}")
            return
        target = choose_target(
            api=api, url=url, serve=serve, model=model, timeout_s=timeout_s, key_file=key_file
        )
        if load is not None:
            conditions = Conditions(
                shape.concurrency, shape.rounds, keep=keep, claim=choose_claim(claim)
            )
            record = measure_file(target, load, conditions, note)
        else:
            material = Material(text_files(text), tokenizer)
            record = measure_generated(
                target, shape, material, choose_cells(cells), keep=keep, tell=note
            )
        give_out(record, show_mixed(record), as_json=as_json, out=out)
