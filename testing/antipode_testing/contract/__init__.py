"""The claims that every shim is tested against; `ShimContract` has them all."""
