"""Replicated servers of each store: a package a store, and what they share."""
