"""The list of a document's earlier conversations: first question and when. Makes HTML from the
API's conversations; asks nothing itself."""

from __future__ import annotations

from ui.client import Json
from ui.markup import CLICKS, button, esc, number
from ui.strings import Lang, text

FOLDS = (
    CLICKS
    + """
let open = false;
const draw = () => {
  const fold = element.querySelector('details');
  if (fold && fold.open !== open) fold.open = open;
  for (const time of element.querySelectorAll('time')) {
    const when = new Date(time.dateTime);
    const local = when.toLocaleString(time.lang, { dateStyle: 'medium', timeStyle: 'short' });
    if (time.textContent !== local) time.textContent = local;
  }
};
element.addEventListener('click', (event) => {
  const title = event.target.closest('summary');
  if (title) open = !open;
  if (!event.target.closest('[data-act]')) return;
  open = false;
  element.querySelector('summary').focus();
  draw();
});
new MutationObserver(draw).observe(element, {
  childList: true, subtree: true, characterData: true,
  attributes: true, attributeFilter: ['open', 'datetime', 'lang'],
});
draw();
"""
)
"""Keeps the list open or shut while it is drawn anew, shuts it when one is chosen, and tells times
as the reader's clock has them."""


def earlier_html(listed: Json, document_id: str, current: str | None, lang: Lang) -> str:
    """The conversations about a document in the API's order, those without a question left out;
    `current` is the one in view. Empty when there is none."""
    titled = [one for one in listed["data"] if one["title"].strip()]
    if not titled:
        return ""
    entries = "".join(_entry(one, document_id, one["id"] == current, lang) for one in titled)
    older = listed["total"] - len(listed["data"])
    more = text(lang, "earlier_more", count=number(older)) if older > 0 else ""
    said = esc(text(lang, "earlier_questions", count=number(len(titled) + max(0, older))))
    fresh = ""
    if current is not None:
        fresh = f"<p>{button(text(lang, 'new_conversation'), 'fresh', document=document_id)}</p>"
    rest = f'<p class="fp-muted">{esc(more)}</p>' if more else ""
    return (
        f'<details class="fp-past"><summary>{said}</summary>'
        f"<div>{fresh}<ul>{entries}</ul>{rest}</div></details>"
    )


def _entry(conversation: Json, document_id: str, current: bool, lang: Lang) -> str:
    asked = button(
        str(conversation["title"]),
        "reopen",
        css="fp-past-title",
        id=conversation["id"],
        document=document_id,
    )
    made = str(conversation["created_at"])
    spoken = "zh-CN" if lang == "zh" else "en-GB"
    when = f'<time datetime="{esc(made)}" lang="{spoken}">{esc(made[:16].replace("T", " "))}</time>'
    marked = ' aria-current="true"' if current else ""
    return f"<li{marked}>{asked}{when}</li>"
