"""Gradebook's app: `streamlit run app.py`.

Streamlit imports this file to serve it, and runs it for every learner.
"""

import os

# Before torch: small batches gain nothing from threads, and thirty learners
# on a few cores lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if __name__ == "__main__":
    from gradebook.ui.shell import app as page

    page()
else:
    import streamlit as st

    from gradebook.ui.warm import warmed

    app = st.App(__file__, lifespan=warmed)
