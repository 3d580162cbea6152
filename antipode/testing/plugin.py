"""The pytest plugin: the fixtures of `antipode.testing`."""
