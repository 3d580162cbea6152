"""The library's own connections to the store. No other room opens one."""
