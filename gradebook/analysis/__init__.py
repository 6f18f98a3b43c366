"""What is computed from a case: the comparison of both engines, laws,
challenges, influence, formulas and shrinking."""
