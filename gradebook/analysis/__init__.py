"""What is computed from a case: comparison, laws, challenges, formulas, shrinking."""
