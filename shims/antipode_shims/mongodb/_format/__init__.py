"""How lineages lie in documents, and tombstones: what Table 2 and stored lineages share. No I/O."""
