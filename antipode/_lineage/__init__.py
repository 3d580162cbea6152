"""Values: write identifiers, lineages, outcomes, errors, and their text. Pure."""
