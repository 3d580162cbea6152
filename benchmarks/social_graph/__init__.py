"""The social network of DeathStarBench: compose in one region, home timelines in another.

`services/` is the application, in C++ and Python. This package starts it over real stores,
composes posts, reads home timelines, and judges what readers were shown.
"""
