"""Small pieces of HTML. Everything that comes from a document, a file name or the API passes `esc`:
document text is untrusted."""

from __future__ import annotations

import html
import re

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def esc(value: object) -> str:
    """`value` as text that is safe inside an element or a quoted attribute. Braces and `$` are
    escaped too, because the page's components know template languages."""
    escaped = html.escape(_CONTROL.sub("", str(value)), quote=True)
    return escaped.replace("{", "&#123;").replace("$", "&#36;").replace("`", "&#96;")


def button(label: str, act: str, *, css: str = "fp-link", title: str = "", **data: object) -> str:
    """A button that tells the server `act` with `data`. `title` is its accessible name when the
    label alone would not say enough."""
    attributes = "".join(f' data-{key}="{esc(value)}"' for key, value in data.items())
    named = f' aria-label="{esc(title)}" title="{esc(title)}"' if title else ""
    return (
        f'<button type="button" class="{css}" data-act="{esc(act)}"{attributes}{named}>'
        f"{esc(label)}</button>"
    )


def number(value: float) -> str:
    """A count with separators."""
    return f"{value:,.0f}"


CLICKS = """
element.addEventListener('click', (event) => {
  const target = event.target.closest('[data-act]');
  if (!target || !element.contains(target)) return;
  if (target.dataset.confirm && !window.confirm(target.dataset.confirm)) return;
  if (target.dataset.act === 'select') element.dataset.clicked = target.dataset.id;
  trigger('act', { ...target.dataset });
});
"""
"""Reports a click on any element with `data-act` as the event `act` with its data attributes.
What was clicked to be selected is kept on the region."""

_CLICKED = "document.querySelector('#fp-library [data-clicked]')"

CHOOSE = f"(chosen) => {_CLICKED}?.dataset.clicked ?? chosen"
"""What was clicked to be selected, or what is chosen, unless anything was."""

CHOSEN = f"""
(chosen) => {{
  const region = {_CLICKED};
  if (region?.dataset.clicked === chosen) delete region.dataset.clicked;
}}
"""
"""Forgets a click once the choice has come to be what was clicked."""

ASK_CLICKED = f"(chosen, ...rest) => [{_CLICKED}?.dataset.clicked ?? chosen, ...rest]"
"""Runs before a question's handler: a click that is not the choice yet counts already."""

FOLLOWS = (
    CLICKS
    + """
let known = 0, held = false;
const region = element.closest('#fp-talk');
for (const kind of ['wheel', 'touchmove', 'keydown']) {
  region.addEventListener(kind, () => { held = true; }, { passive: true });
}
new MutationObserver(() => {
  const all = element.querySelectorAll('.fp-exchange');
  const last = all[all.length - 1];
  if (all.length > known) held = false;
  if (last && !held) {
    region.scrollTop += last.getBoundingClientRect().top - region.getBoundingClientRect().top;
  }
  known = all.length;
}).observe(element, { childList: true, subtree: true, characterData: true });
element.addEventListener('click', (event) => {
  const source = event.target.closest('[data-act="cite"], [data-act="near"]');
  // On a narrow screen the page lies below the conversation.
  if (source && window.innerWidth <= 1000) {
    document.querySelector('#fp-page-column').scrollIntoView();
  }
});
let missed = 0;
const look = async () => {
  // The region is mounted anew, with a loop of its own, each time its view is chosen.
  if (!element.isConnected) return;
  let lost = true;
  try {
    const limit = AbortSignal.timeout(5000);
    const reply = await fetch('healthz', { cache: 'no-store', signal: limit });
    lost = reply.status >= 502 && reply.status <= 504;
  } catch { /* nobody answered */ }
  missed = lost ? missed + 1 : 0;
  region.classList.toggle('fp-disconnected', missed > 1);
  setTimeout(look, 3000);
};
look();
"""
)
"""Also keeps the newest question at the top of its region while its answer comes, until the reader
scrolls; and looks every 3 s whether the server, or a proxy on its behalf, still answers: twice
without an answer it is lost. Once it answers again, Gradio loads the page anew."""
