"""Worked examples: services with Antipode in them, tested as they stand."""
