"""What an instrumented client costs over the plain one: the same calls by turns, in one run."""
