"""Lineages stored with rows; imported only where ``lineage="beside"`` asks for it."""
