"""Lineages in documents; imported only where ``lineage="beside"`` asks for it."""
