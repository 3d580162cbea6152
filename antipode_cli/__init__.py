"""The program ``antipode``: its commands, its reports, and their options in pytest.

Nothing in `antipode` imports it.
"""
