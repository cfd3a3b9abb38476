"""From folders and files to a report on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.db.session import make_folder
from app.storage import atomic_write
from eval.errors import RunError
from eval.reports.assembly import assemble
from eval.reports.benches.record import load_bench
from eval.reports.entries import find_entry, open_entries
from eval.reports.markdown import markdown_page
from eval.reports.page import html_page


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. `sentence` names the default mode, empty when nothing names one."""

    html: Path
    markdown: Path
    runs: tuple[str, ...]
    baseline: str
    default: str
    default_run: str
    sentence: str
    warnings: tuple[str, ...]

    def fields(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "html": str(self.html),
            "markdown": str(self.markdown),
            "runs": list(self.runs),
            "baseline": self.baseline or None,
            "default": self.default or None,
            "default_run": self.default_run or None,
            "why": self.sentence or None,
            "warnings": list(self.warnings),
        }


def write_report(
    folders: Sequence[Path],
    bench: Sequence[Path],
    *,
    out: Path,
    title: str,
    baseline: str | None,
) -> Written:
    """Writes `report.html` and `report.md` into `out`, each whole or not at all.

    Raises RunError for a folder without a run or records, a file that is no benchmark record, an
    unknown baseline, or when nothing is given; StorageFull.
    """
    if not folders and not bench:
        raise RunError("Nothing to report on. Name folders of fineprint eval run, or --bench FILE.")
    entries = open_entries(folders)
    records = [load_bench(path) for path in bench]
    base = None
    if entries:
        base = entries[0] if baseline is None else find_entry(entries, baseline)
    elif baseline is not None:
        raise RunError("--baseline names a run, and no run is given.")
    report = assemble(entries, base, records, title=title)
    make_folder(out)
    html, markdown = out / "report.html", out / "report.md"
    for path, text in ((html, html_page(report)), (markdown, markdown_page(report))):
        with atomic_write(path) as file:
            file.write(text.encode())
    return Written(
        html=html,
        markdown=markdown,
        runs=tuple(entry.label for entry in entries),
        baseline=base.label if base else "",
        default=report.verdict.mode if report.verdict else "",
        default_run=report.verdict.run if report.verdict else "",
        sentence=report.verdict.sentence if report.verdict else "",
        warnings=report.runs.warnings if report.runs else (),
    )
