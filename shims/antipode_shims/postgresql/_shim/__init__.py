"""Table 2's API, and what every shim of this store has: a datastore, a server, its registration."""
