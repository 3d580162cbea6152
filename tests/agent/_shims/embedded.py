"""The embedded store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from antipode_shims import embedded

from ._open import OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim at the file that the URL names."""
    url = given["server"]["url"]
    shim = embedded.shim(given["datastore"], url, **options(given))

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        """Write while the file refuses it, so that the transaction fails as a whole."""
        refuse = "CREATE TRIGGER refused BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, ''); END"
        with closing(sqlite3.connect(url, isolation_level=None)) as connection:
            connection.execute(refuse)
            try:
                shim.write(key, value, fulfils=promise)
            finally:
                connection.execute("DROP TRIGGER refused")

    return Table2(shim, roll_back=roll_back)
