"""python -m gradebook.measure: see gradebook/measure/wheels.py."""

import sys

from gradebook.measure.wheels import main

if __name__ == "__main__":
    sys.exit(main())
