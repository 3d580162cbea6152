"""Cross-service causal consistency: effects are never shown before their causes."""
