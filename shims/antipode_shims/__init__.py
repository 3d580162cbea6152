"""One module per datastore; each needs the pip extra of its own name."""
