"""Map: the stages of the computation, and every bug at the stage it breaks."""

from gradebook.ui.pages.map import map_page

map_page()
