"""Figures and files: CSV, TOML, pytest files, handouts."""
