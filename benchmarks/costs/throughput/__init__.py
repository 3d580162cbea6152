"""Throughput at saturation: rounds of a write and a read, by many threads of one process."""
