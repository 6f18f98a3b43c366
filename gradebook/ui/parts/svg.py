"""An SVG picture that is drawn anew without being mounted anew.

Streamlit's own HTML element drops SVG, and an image file flickers when it is
replaced ten times a second.
"""

from __future__ import annotations

import streamlit as st

PROGRAM = """export default ({ data, parentElement, setTriggerValue }) => {
  let box = parentElement.querySelector('div.svg');
  if (!box) {
    box = document.createElement('div');
    box.className = 'svg';
    parentElement.appendChild(box);
  }
  box.innerHTML = data;
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
    "gradebook_svg", js=PROGRAM, isolate_styles=False
)


def show_svg(svg: str, key: str) -> str:
    """The picture, in the text's colour and font. The data-name of the link
    that was clicked in it, or ''."""
    shown = component(key=key, data=svg, on_opened_change=lambda: None)
    return shown.opened or ""
