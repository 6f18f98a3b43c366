"""Mystery trainer: one bug or none is hidden; edits bring it out."""

from gradebook.ui.pages.mystery import mystery

mystery()
