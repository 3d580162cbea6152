"""What Table 2 and the lineages of rows share in SQL: quoting, the table of tombstones."""

from __future__ import annotations

#: How long a key may be that is kept as it is.
KEY_BYTES = 512


def quoted(name: str) -> str:
    """An identifier, with a schema before it perhaps, in the way no name can break out of."""
    parts = (part.replace("`", "``").replace("%", "%%") for part in name.split("."))
    return ".".join(f"`{part}`" for part in parts)


def tombstones_as(name: str) -> str:
    """The table of deletions, which tables may share, as ``CREATE TABLE`` takes it."""
    return (
        f"{quoted(name)} (t VARBINARY(256) NOT NULL,"
        f" k VARBINARY({KEY_BYTES}) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL,"
        " n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))"
    )
