"""What the shims of SQL databases share."""
