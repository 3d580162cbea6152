"""MySQL and MariaDB: a primary and its replicas."""
