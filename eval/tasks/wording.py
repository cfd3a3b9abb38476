"""The words of planted clauses and of the questions about them, per language, and values for them
that the surrounding text does not hold.

Knows nothing of tasks and tokens.
"""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from retrieval.types import Language

_ATTEMPTS = 1000


@functools.cache
def wording(lang: Language) -> Mapping[str, Any]:
    """The templates of a language, as in wording.toml."""
    everything = tomllib.loads(files("eval.tasks").joinpath("wording.toml").read_text("utf-8"))
    found: Mapping[str, Any] = everything[lang]
    return found


class Invention:
    """Invents names and figures that stand neither in a text nor among those invented before.

    Figures are also looked for without the commas between thousands. The answer to a question can
    so be only what was planted for it.
    """

    def __init__(self, lang: Language, text: str, rng: random.Random) -> None:
        self.words = wording(lang)
        self.rng = rng
        self._text = text.lower()
        self._bare = self._text.replace(",", "")
        self._taken: set[str] = set()

    def key(self, name: str | None = None) -> str:
        """A name with a number, "Kestrel-48"; each name is used once unless it is given."""
        return self._new(lambda: self._numbered(name or self.name()))

    def name(self) -> str:
        """A name that was not given out before; two joined where the text uses up the single
        ones."""
        names = self.words["names"]
        single = [name for name in names if self._is_new(name)]
        chosen = self.rng.choice(single) if single else None
        return self._new(lambda: chosen or self.words["pair"].format(*self.rng.sample(names, 2)))

    def value(self, kind: str) -> str:
        """An amount, percentage, quantity or date as it is written in the language."""
        if kind == "date":
            return self._new(self.date)
        figure = self._new(lambda: self._figure(kind))
        return str(self.words[kind]).format(figure=figure)

    def date(self) -> str:
        """A day of the years 2041 to 2079, not looked for in the text."""
        return str(self.words["date"]).format(
            day=self.rng.randint(1, 28),
            month=self.rng.choice(self.words["months"]),
            year=self.rng.randint(2041, 2079),
        )

    def _numbered(self, name: str) -> str:
        return str(self.words["key"]).format(name=name, number=self.rng.randint(11, 99))

    def _figure(self, kind: str) -> str:
        if kind == "percentage":
            return f"{self.rng.randint(2, 18)}.{self.rng.randint(1, 999):03d}"
        if kind == "quantity":
            return f"{self.rng.randint(10_000, 99_999):,}"
        return f"{self.rng.randint(1_000_000, 9_999_999):,}.{self.rng.randint(1, 99):02d}"

    def _new(self, invent: Callable[[], str]) -> str:
        for _ in range(_ATTEMPTS):
            found = invent()
            if self._is_new(found):
                self._taken.add(found)
                return found
        raise RuntimeError(f"no new value in {_ATTEMPTS} attempts")

    def _is_new(self, words: str) -> bool:
        bare = words.lower().replace(",", "")
        return not (words in self._taken or bare in self._bare or words.lower() in self._text)
