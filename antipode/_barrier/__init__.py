"""Waiting: the contract of a shim, watchers, floors, barriers, promises."""
