"""What the library costs: the page docs/results/costs.md, made of what three benchmarks wrote.

``python -m benchmarks.costs``; the benchmarks are `benchmarks.micro`, `benchmarks.overhead` and
`benchmarks.requests`.
"""
