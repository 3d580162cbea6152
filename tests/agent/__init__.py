"""The conformance agent: does what lines of JSON say (specification, the conformance agent)."""
