"""The dry run. Nothing imports it but the start."""
