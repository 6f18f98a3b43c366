"""Judging: which computation the logged advantages follow."""
