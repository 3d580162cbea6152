"""Synchronous replication with MySQL: semi-synchronous, by its two plugins."""

from __future__ import annotations

from typing import ClassVar

from ._semisync import SemiSynchronous


class Synchronous(SemiSynchronous):
    """What the manual calls a lossless semi-synchronous set-up: ``AFTER_SYNC``, the default."""

    INSTALL: ClassVar[tuple[tuple[str, str], ...]] = (
        ("writer", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'"),
        ("reader", "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'"),
    )
    ON: ClassVar[tuple[tuple[str, str], ...]] = (
        ("writer", "SET GLOBAL rpl_semi_sync_source_enabled = 1"),
        ("reader", "SET GLOBAL rpl_semi_sync_replica_enabled = 1"),
        ("reader", "STOP REPLICA IO_THREAD"),
        ("reader", "START REPLICA IO_THREAD"),
    )
    OFF: ClassVar[tuple[tuple[str, str], ...]] = (
        ("writer", "SET GLOBAL rpl_semi_sync_source_enabled = 0"),
        ("reader", "SET GLOBAL rpl_semi_sync_replica_enabled = 0"),
    )
    CLIENTS: ClassVar[str] = "Rpl_semi_sync_source_clients"
