"""`python -m gradebook.training` answers what a server asks (runs.py), without
the app or Streamlit; with `precompute` it writes the curves that are shipped."""

import sys

from gradebook.training.runs import precompute, serve

if __name__ == "__main__":
    precompute() if sys.argv[1:] == ["precompute"] else serve()
