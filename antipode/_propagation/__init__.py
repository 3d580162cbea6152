"""Lineages between services: baggage in and out, headers of responses."""
