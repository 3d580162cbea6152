"""Which tests a change reaches, and a program that runs them: ``python -m tools.affected``.

What a test needs is read from the code: `_needs` finds what one Python file needs, `_fixtures` what
the fixtures of a test need, `_reach` follows both, and `_plan` makes of a change what is to be run.
"""
