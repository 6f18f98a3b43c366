"""The Streamlit side of Gradebook: the only package, besides app.py and
pages/, that imports Streamlit."""
