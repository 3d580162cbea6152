"""What an instrumented run of a suite begins with: ``setup()``, and a scope around each test.

The rules of ``ANTIPODE_DATASTORES`` instrument the clients that the suite makes. Those of psycopg2
and asyncpg, which have no rules, are made by the calls that their guide names.
"""

# ruff: noqa: ANN401, PLC0415 - it stands in for calls of each driver, where that is installed

from __future__ import annotations

import logging
import os
import unittest
from functools import partial
from typing import Any

import antipode

# Suites look at what their processes print, and have no scopes there.
logging.getLogger("antipode").addHandler(logging.NullHandler())
logging.getLogger("antipode").propagate = False
antipode.setup()

_plain_call = unittest.TestCase.__call__


def _in_scope(self: unittest.TestCase, *args: Any, **options: Any) -> Any:
    with antipode.scope():
        return _plain_call(self, *args, **options)


def _instrument_psycopg2() -> None:
    import psycopg2

    from antipode_shims import postgresql

    plain = psycopg2.connect

    def connect(
        dsn: Any = None, connection_factory: Any = None, cursor_factory: Any = None, **more: Any
    ) -> Any:
        made = connection_factory
        asynchronous = more.get("async") or more.get("async_")
        if not asynchronous and (made is None or isinstance(made, type)):
            made = postgresql.connection_factory(base=connection_factory, datastore="suite")
        return plain(dsn, made, cursor_factory, **more)

    psycopg2.connect = connect


def _instrument_asyncpg() -> None:
    from asyncpg import connect_utils

    from antipode_shims import postgresql

    plain = connect_utils._connect  # noqa: SLF001 - what connect() and pools share

    async def connect(**options: Any) -> Any:
        return postgresql.instrument_connection(await plain(**options), datastore="suite")

    connect_utils._connect = connect  # noqa: SLF001


def _store_in_metadata() -> None:
    """Lineages are with the objects, too: no rule says that."""
    from antipode_shims.s3._clients import process_wide

    module: Any = process_wide
    module.instrument_client = partial(module.instrument_client, lineage="beside")


def _instrument_botocore(**of_s3: str) -> None:
    """Clients of boto3 and aiobotocore, whose servers no rule names.

    Args:
        of_s3: what those of S3 are instrumented with.
    """
    from botocore.client import BaseClient

    from antipode_shims import dynamodb, s3, sns

    plain = BaseClient.__init__
    stores: dict[str, Any] = {"dynamodb": dynamodb, "s3": s3, "sns": sns, "sqs": sns}

    def made(self: Any, *args: Any, **options: Any) -> None:
        plain(self, *args, **options)
        name = self.meta.service_model.service_name
        if name in stores:
            options = of_s3 if name == "s3" else {}
            stores[name].instrument_client(self, datastore=f"suite-{name}", **options)

    BaseClient.__init__ = made


unittest.TestCase.__call__ = _in_scope  # type: ignore[method-assign]
match os.environ.get("SUITE_DRIVER"):
    case "psycopg2":
        _instrument_psycopg2()
    case "asyncpg":
        _instrument_asyncpg()
    case "aiobotocore":
        _instrument_botocore()
    case "botocore":
        _instrument_botocore(lineage="beside")
    case "moto-s3":
        _store_in_metadata()
