"""Client libraries: how each is instrumented, one file a library and what they share."""
