"""The script of a visit, in a folder of its own: Streamlit would take pages/ beside it
for pages of the app."""
