"""One request in this process: its scope, and what enters it."""
