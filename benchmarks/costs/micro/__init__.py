"""What the library adds to a call, as ratios to bare OpenTelemetry calls of the same run.

``python -m benchmarks.costs.micro``; docs/guides/post-notification.md says how to read it.
"""
