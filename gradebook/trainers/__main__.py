"""python -m gradebook.trainers measure: see gradebook/trainers/measure.py."""

import sys

from gradebook.trainers.measure import main

if __name__ == "__main__":
    sys.exit(main())
