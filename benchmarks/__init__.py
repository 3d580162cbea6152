"""Benchmarks: programs that measure the library the way its documentation says."""
