"""Gradebook's app: `streamlit run app.py`."""

import os

# Before torch: small batches gain nothing from threads, and thirty learners
# on a few cores lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from gradebook.ui.shell import app  # noqa: E402

app()
