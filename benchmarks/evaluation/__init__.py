"""The paper's evaluation (sections 2.3 and 7): a plan of runs, and the page made of their results.

``python -m benchmarks.evaluation --help``; docs/guides/post-notification.md says what the figures
mean.
"""
