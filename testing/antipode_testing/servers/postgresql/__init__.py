"""PostgreSQL: where its programs are, one server, and a primary with streaming standbys."""
