"""Recorder and guard inside trainers that are known by name. None of these
modules imports its trainer."""
