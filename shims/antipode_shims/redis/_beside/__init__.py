"""Lineages stored with values: their text, the commands that carry them, tombstones. No I/O."""
