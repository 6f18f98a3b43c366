"""An SVG picture that is drawn anew without being mounted anew.

Streamlit's own HTML element drops SVG, and an image file flickers when it is
replaced ten times a second.
"""

from __future__ import annotations

import streamlit as st

PROGRAM = """export default ({ data, parentElement }) => {
  let box = parentElement.querySelector('div.svg');
  if (!box) {
    box = document.createElement('div');
    box.className = 'svg';
    parentElement.appendChild(box);
  }
  box.innerHTML = data;
};"""
component = st.components.v2.component(
    "gradebook_svg", js=PROGRAM, isolate_styles=False
)


def show_svg(svg: str, key: str) -> None:
    """The picture, in the text's colour and font."""
    component(key=key, data=svg)
