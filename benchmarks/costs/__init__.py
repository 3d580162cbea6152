"""What the library costs, a package a question; their page is docs/results/costs.md.

`micro` times operations of the core, `overhead` calls of clients, `requests` empty requests, and
`throughput` what a process does in a second. ``python -m benchmarks.costs`` makes the page of what
they wrote.
"""
