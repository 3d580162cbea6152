"""Redis: a primary and its replicas, with Sentinels where asked for."""
