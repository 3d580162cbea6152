"""The database itself: a file for each region, and the replicator between them."""
