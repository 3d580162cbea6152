"""Lineages in companion keys; imported only where ``lineage="beside"`` asks for it."""
