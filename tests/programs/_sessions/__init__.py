"""Random sessions: what a client committed is in the lineage, and nothing succeeds before it."""
