"""Synchronous replication with MariaDB: semi-synchronous, which is built in."""

from __future__ import annotations

from typing import ClassVar

from ._semisync import SemiSynchronous


class Synchronous(SemiSynchronous):
    """The default wait point, after the commit in the primary's own engine."""

    INSTALL: ClassVar[tuple[tuple[str, str], ...]] = (
        ("reader", "SET GLOBAL rpl_semi_sync_slave_enabled = 1"),
        ("reader", "STOP REPLICA IO_THREAD"),
        ("reader", "START REPLICA IO_THREAD"),
    )
    ON: ClassVar[str] = "SET GLOBAL rpl_semi_sync_master_enabled = 1"
    OFF: ClassVar[str] = "SET GLOBAL rpl_semi_sync_master_enabled = 0"
    CLIENTS: ClassVar[str] = "Rpl_semi_sync_master_clients"
