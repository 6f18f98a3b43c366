"""The hour's plan, and rooms with votes."""
