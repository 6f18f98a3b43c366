"""Recordings: what a training loop hands over, written to Parquet files
that the check reads with nothing guessed."""
