"""Tolerance: how far numbers that were rounded may differ from exact ones.

The check, the probe, the laws and the bugs read these constants. Scores that are off
by d move an advantage by about d (1 + |advantage|) / scale, so whatever is allowed for
a score is divided by the scale of its row.
"""

FLOAT32 = 2.0**-24
"""Half of float32's spacing at 1: one operation moves a number by at most this share
of its size."""

SCORES = 4 * FLOAT32
"""A float32 score, a mean over such scores and their difference: three operations, and
one for the order of a sum."""

ONE_PASS = 8 * FLOAT32
"""A one-pass variance in float32, as a share of the sum of squares: the squares, two
means, their product and the difference, each rounded, on both of its terms."""

OF_LAWS = 16 * FLOAT32
"""What a law's change of the rewards may move a float32 advantage by, as a share of
the rewards' size: SCORES before the change and after it, each on two terms."""

LAW_SPACINGS = 8
"""The same for an engine on a batch of any float type, in spacings of that type, but
not for sums over its rows. A sum over n rows is rounded n - 1 times by half a spacing,
before the change and after it, which is another n spacings at most."""

WHITENS = 1e4
"""A second normalization divides by the root of a variance plus 1e-8, so it makes
rounding at most this many times larger."""

LEAST_SIZE = 1e-3
"""Rounding that is a share of a number's size is taken at this size for all smaller
ones: a trainer's arithmetic has numbers of usual size beside them."""

FITS_ALL = 1e-3
"""A share of an advantage's size. An eps that was solved must give each row this
exactly. ddof 0 and 1 differ by more in groups of up to 500 rows."""

SAME = 2.0**-40
"""A float64 mean of equal scores is off by less, relative to their size: a sum of 4,096
of them is off by at most 2^-41."""

BASE = 1e-5
"""Distance that is always allowed, times 1 + |advantage|: float32 advantages that were
normalized twice over 1,000 rows are off by up to 3e-6."""

MOST_SCORES = 0.25
"""Rounding of float32 scores never explains more than this. A group whose deviation is
below the scores' spacing can be off by any number."""

MOST_ROUNDING = 0.01
"""If rounding may move an advantage by more, neither a fit nor a law tells anything:
1 % is what separates ddof 0 from ddof 1 in a group of 50 rows."""

TYPES = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Number types with few digits, and half their spacing at 1."""

TYPE_MARGIN = 1.01
"""A number between two numbers of a type is moved by half their spacing; the last
operation before it, in float32, by a little more."""

TYPE_LEAST = 1e-7
"""Below the smallest normal float16, 6e-5, the spacing is 6e-8 whatever the size."""

DECIMAL_MARGIN = 0.501
"""Of the last decimal: a half, and what the number's own float32 adds."""

SHORT_BY_NATURE = 10
"""Numbers that have few digits by nature are off by less than their rounding over this:
those of a trainer in float32 by about 1e-7, and half of a fifth decimal is 5e-6."""

NEAR = 0.1
"""A row is near when it is this close, times 1 + |advantage|: no usual eps moves a row
of a usual deviation by more."""

LARGE = 0.5
"""An advantage above this shows whether a second normalization comes near. Whatever is
below NEAR on all rows is near everything, and a normalized step has larger ones."""

MOST_EPS, MOST_INSIDE = 1.01e-3, 1.01e-4
"""The largest usual eps after the root, and inside it (`space.EPS_PLACES`), and a
hundredth for their own digits."""

EXACT = 1e-9
"""Float64 numbers of usual size that should be equal differ by at most this: a mean of
equal rewards leaves less. An advantage or a distance of at most this is 0."""

NEARLY_EQUAL = 2.5e-7
"""Numbers are nearly equal if their variance is at most this share of their mean
square: they differ by about a 2,000th of their size."""

UNDIVIDED = 1e-4
"""An advantage this near to the distance from its baseline, as a share of it, was not
divided by a deviation."""

BEYOND = 10.0
"""A declared computation is contradicted, and a row is off, if it is this many times
beyond what rounding allows. Nearer than that, an allowance that is too small by some
factor would accuse an innocent."""

LEAST_SHARE = 0.4
"""A computation that fits a smaller share of the rows is no near miss. By chance, about
3 % of the rows of noise fit one of the known computations."""
