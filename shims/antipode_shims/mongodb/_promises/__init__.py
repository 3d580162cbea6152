"""Promises: their records, and how an application keeps one in the transaction of its data."""
