"""Read: files and tables as canonical columns of whole steps."""
