"""The paper's post-notification application (sections 2.2 and 7.1), measured on one machine.

``python -m benchmarks.post_notification --help``; docs/guides/post-notification.md says how to
read the result.
"""
