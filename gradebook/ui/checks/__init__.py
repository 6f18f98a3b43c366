"""The page "Check your run": what is asked, the verdict, and its steps."""
