"""One file a client library, and what they share."""
