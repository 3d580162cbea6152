"""MongoDB: a replica set of a primary and its secondaries."""
