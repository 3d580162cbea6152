"""What runs the example on one machine; no part of the services."""

from __future__ import annotations

from ._cli import main
from ._regions import Regions
from ._services import Services
from ._story import Seen, tell

__all__ = ["Regions", "Seen", "Services", "main", "tell"]
