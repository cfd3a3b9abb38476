"""Checks the licence of every package that Fineprint runs on, optional ones included.

Walks the requirements of the installed `fineprint` (development tools left out: they are not part
of the program) and reads each package's own statement. A licence that is not on the list below, or
that nobody can read, fails: look at it, then add it here or drop the package. Does not read licence
texts, and does not know which native libraries a wheel carries.

    python scripts/check_licences.py        exit 0: all allowed; 1: something to decide
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "fineprint"
EXTRAS = ("postgres",)
"""Optional features that `make setup` installs; `dev` is not among them."""

FURTHER_EXTRAS = ("ocr", "otel")
"""Optional features that it leaves out: they are checked where they are installed, and said to be
unread where they are not."""

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""SPDX identifiers that an Apache-2.0 program may depend on."""

ALLOWED_FOR = {
    "psycopg": frozenset({"LGPL-3.0-only"}),
    "psycopg-binary": frozenset({"LGPL-3.0-only"}),
}
"""The LGPL is fine for the PostgreSQL driver: it is optional, unmodified, imported at run time, and
a user can put another build in its place."""

SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    # pypdfium2 names its own licences and points to those of PDFium's parts (all permissive:
    # BSD, Apache-2.0, MIT, zlib, FreeType, libpng, libtiff, ICU, AGG 2.3).
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
}
"""What packages without an SPDX expression write, and the expression it stands for."""

_TOKEN = re.compile(r"\(|\)|[^\s()]+")


class UnknownLicence(Exception):
    """A package whose licence can't be read as an SPDX expression."""


def statement(package: metadata.PackageMetadata) -> str:
    """The SPDX expression a package states: `License-Expression`, else its classifiers (all of them
    must be allowed), else the `License` field.

    Raises UnknownLicence with what the package wrote instead.
    """
    expression = package["License-Expression"]
    if expression:
        return _canonical(expression)
    classifiers = [
        entry.rsplit(" :: ", 1)[1]
        for entry in package.get_all("Classifier") or []
        if entry.startswith("License ::") and not entry.endswith(":: OSI Approved")
    ]
    # "DFSG approved" and the like say that a licence is free, not which one it is.
    named = [entry for entry in classifiers if "approved" not in entry]
    stated = named or [(package["License"] or "").strip()]
    return " AND ".join(f"({_canonical(SPELLINGS.get(entry, entry))})" for entry in stated)


def _canonical(expression: str) -> str:
    try:
        return canonicalize_license_expression(expression)
    except InvalidLicenseExpression as error:
        shown = expression[:80] or "nothing"
        raise UnknownLicence(f"states {shown!r}, which is no SPDX expression") from error


def is_allowed(expression: str, also: frozenset[str] = frozenset()) -> bool:
    """Whether a package under this SPDX expression may be used: every part of an AND, one part of
    an OR (which binds weaker than AND)."""
    tokens: list[str] = _TOKEN.findall(expression)

    def disjunction() -> bool:
        value = conjunction()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            other = conjunction()
            value = value or other
        return value

    def conjunction() -> bool:
        value = licence()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            other = licence()
            value = value and other
        return value

    def licence() -> bool:
        token = tokens.pop(0)
        if token == "(":
            value = disjunction()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in ALLOWED or token in also

    return disjunction()


def requirements(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The packages one installed package asks for on this machine, each with its extras."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def closure(name: str, extras: frozenset[str]) -> list[str]:
    """Everything an installed package runs on, sorted, without itself.

    Raises importlib.metadata.PackageNotFoundError for a requirement that is not installed.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        entry = waiting.pop()
        if entry not in seen:
            seen.add(entry)
            waiting.extend(requirements(*entry))
    return sorted({found for found, _ in seen} - {name})


def main() -> int:
    """Prints what is not allowed; the exit status is 1 if there is anything."""
    try:
        names = set(closure(PROJECT, frozenset(EXTRAS)))
    except metadata.PackageNotFoundError as error:
        print(f"{error.name} is not installed: run make setup", file=sys.stderr)
        return 1
    for extra in FURTHER_EXTRAS:
        try:
            names.update(closure(PROJECT, frozenset({extra})))
        except metadata.PackageNotFoundError as error:
            print(f"not read: the extra {extra}, of which {error.name} is not installed")
    problems = []
    for name in sorted(names):
        try:
            expression = statement(metadata.metadata(name))
        except UnknownLicence as error:
            problems.append(f"{name} {error}")
            continue
        if not is_allowed(expression, ALLOWED_FOR.get(name, frozenset())):
            problems.append(f"{name} is under {expression}")
    for problem in problems:
        print(f"not allowed: {problem}", file=sys.stderr)
    print(f"licences of {len(names)} packages read, {len(problems)} to decide")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
