"""Synchronous replication with MySQL: semi-synchronous, by its two plugins."""

from __future__ import annotations

from typing import ClassVar

from ._semisync import SemiSynchronous


class Synchronous(SemiSynchronous):
    """What the manual calls a lossless semi-synchronous set-up: ``AFTER_SYNC``, the default."""

    INSTALL: ClassVar[tuple[tuple[str, str], ...]] = (
        ("writer", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'"),
        ("reader", "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'"),
        ("reader", "SET GLOBAL rpl_semi_sync_replica_enabled = 1"),
        ("reader", "STOP REPLICA IO_THREAD"),
        ("reader", "START REPLICA IO_THREAD"),
    )
    ON: ClassVar[str] = "SET GLOBAL rpl_semi_sync_source_enabled = 1"
    OFF: ClassVar[str] = "SET GLOBAL rpl_semi_sync_source_enabled = 0"
    CLIENTS: ClassVar[str] = "Rpl_semi_sync_source_clients"
