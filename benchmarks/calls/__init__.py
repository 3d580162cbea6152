"""Calls that happen once, with a server that is killed between any two of its steps."""
