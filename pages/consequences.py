"""Does it matter?: two policies trained side by side, live."""

from gradebook.ui.pages.consequences import consequences

consequences()
