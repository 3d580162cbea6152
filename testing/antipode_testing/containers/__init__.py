"""Servers as containers, and those of a compose file."""
