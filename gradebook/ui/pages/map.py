"""The map: the pipeline's stages, and every bug at the stage it breaks."""

from __future__ import annotations

import streamlit as st

from gradebook.output.pipeline_map import (
    TITLE,
    Picture,
    map_file,
    tall_map,
    wide_map,
)
from gradebook.ui.parts import predict
from gradebook.ui.parts.download import download
from gradebook.ui.parts.markup import show
from gradebook.ui.parts.shell import bug_files


def map_page() -> None:
    """The whole page. The picture holds the heading that is seen."""
    with st.container(key="unseen"):
        st.title(TITLE)
    files = bug_files()
    done = {name for name in files if not predict.covered(name)}
    picture = Picture(href=str, done=done)
    chosen = show(wide_map(picture) + tall_map(picture), key="map")
    if chosen in files:
        st.switch_page(files[chosen])
    st.markdown(
        "Choose a bug to open its page. ✓ marks the bugs whose question you"
        " have answered or skipped. The file holds the same picture, with"
        " links to the pages of this server."
    )
    download(
        "Save the map (SVG)",
        "gradebook-map.svg",
        lambda: map_file(_server()),
    )


def _server() -> str:
    """The address that the pages' names are put behind."""
    here = (st.context.url or "").split("?")[0].rstrip("/")
    return here.rpartition("/")[0]
