"""HTML and SVG that are drawn anew without being mounted anew, and whose
links open pages of the app.

Streamlit's own HTML element drops SVG and starts a new session at each link,
and an image file flickers when it is replaced ten times a second.
"""

from __future__ import annotations

import streamlit as st

PROGRAM = """export default ({ data, parentElement, setTriggerValue }) => {
  const [drawing] = data;
  let box = parentElement.querySelector('div.markup');
  if (!box) {
    box = document.createElement('div');
    box.className = 'markup';
    parentElement.appendChild(box);
  }
  if (box.drawn !== drawing) box.innerHTML = box.drawn = drawing;
  // A link that the server opens, so that the session goes on. With a key
  // held down the browser opens it, in a tab of its own.
  box.onclick = (event) => {
    const link = event.target.closest('a[data-name]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setTriggerValue('opened', link.dataset.name);
  };
};"""
component = st.components.v2.component(
    "gradebook_markup", js=PROGRAM, isolate_styles=False
)


def show(markup: str, key: str) -> str:
    """The HTML or SVG, in the text's colour and font. The data-name of the
    link that was clicked in it, or ''."""
    shown = component(key=key, data=[markup], on_opened_change=lambda: None)
    return shown.opened or ""
