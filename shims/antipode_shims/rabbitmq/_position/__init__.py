"""The store's positions: parsed, compared, judged against what a server has. No I/O."""
