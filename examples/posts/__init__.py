"""A post in the US, its notification in the EU, in five processes.

The services are `us_api`, `eu_consumer`, `eu_tasks` and `eu_api`, over
four stores. `telemetry` sets up what each of them has; `schema` and
`eu_celery` are what some of them share. ``python -m examples.posts``
starts two regions of real servers, runs the services there, and tells
what the EU saw. The guide docs/guides/worked-example.md goes through
the files.
"""
