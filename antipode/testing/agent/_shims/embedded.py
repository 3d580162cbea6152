"""The embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims import embedded

from ._open import OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Mapping


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim at the file that the URL names."""
    return Table2(embedded.shim(given["datastore"], given["server"]["url"], **options(given)))
