"""Verdict: which candidate the logged advantages follow."""
