"""One call that covers a process: every framework, client, thread and loop that is integrated.

`setup` has the call, `targets` what it covers, and `instrumentor` is for
``opentelemetry-instrument``. Integrations are imported by name, once what they integrate is.
"""
