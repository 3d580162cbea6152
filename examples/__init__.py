"""Worked examples: services with Antipode in them, run and tested as they are."""
