"""What happens where something finds no scope: it never passes unseen."""

from __future__ import annotations

from . import _seam
from ._config import config
from ._errors import ConfigurationError
from ._metrics import count, log_once
from ._site import call_site


def unscoped(what: str, datastore: str) -> None:
    """Count, and once for each call site log, something that found no scope.

    Raises:
        ConfigurationError: ``on_unscoped="raise"``, and this is no dry run.
    """
    count(f"unscoped_{what}", datastore)
    site, settings = call_site(), config()
    about = f" to {datastore!r}" if datastore and what != "barrier" else ""
    if (observer := _seam.observer) is not None:
        observer.unscoped(what, datastore)
    elif settings.on_unscoped == "raise":
        msg = f"{what}{about} at {site} outside a scope: open one with antipode.scope()"
        raise ConfigurationError(msg)
    log_once(f"unscoped_{what}", datastore, site, "%s%s at %s outside a scope", what, about, site)
