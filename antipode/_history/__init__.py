"""The recorder of histories (docs/spec/history.md). Loaded by ``history_dir`` alone."""
