"""Primer: what an advantage is, in one minute."""

from gradebook.ui.pages.primer import primer

primer()
