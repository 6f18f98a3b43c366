"""What all else stands on: errors, formatting, settings and the batch."""
