"""Lineages through the frameworks that services are made of, one module for each.

Each needs its framework alone, which is imported when the module is used. Requests are carried by
OpenTelemetry baggage; these modules add what that lacks: a scope that ends with its request, the
lineage of the response, and a mark where a call's outcome was not learned.
"""
