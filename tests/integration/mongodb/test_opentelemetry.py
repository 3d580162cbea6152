"""Instrumented PyMongo clients beside OpenTelemetry's own instrumentation of PyMongo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.instrumentation.pymongo import PymongoInstrumentor
from pymongo import AsyncMongoClient, MongoClient

import antipode
from antipode_shims.mongodb import instrument_client, uninstrument_client
from tests.integration._tracing import ORDERS, Tracing

from ._clients import DB, arguments, exact

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")
TIMEOUT_S = 15.0


@pytest.mark.parametrize("order", ORDERS)
def test_clients(antipode_mongodb: MongoDBTopology, order: str) -> None:
    """A write enters, a read is held, spans are made; undone, nothing enters."""
    with (
        Tracing(PymongoInstrumentor(), order) as tracing,
        MongoClient(**arguments(antipode_mongodb.primary)) as primary,
        MongoClient(**arguments(antipode_mongodb.replica)) as replica,
    ):
        for one, reads_from in ((primary, "primary"), (replica, "replica")):
            assert instrument_client(one, datastore="posts", reads_from=reads_from) is one  # type: ignore[arg-type]
        tracing.ours_is_on()
        with antipode.scope() as scope:
            primary[DB].traced.replace_one({"_id": order}, {"n": 1}, upsert=True)
            assert len(exact(scope.lineage)) == 1
            assert not scope.lineage.incomplete
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert replica[DB].traced.find_one({"_id": order}) == {"_id": order, "n": 1}
        if order == "before":  # PyMongo's listeners are a client's from its start.
            assert tracing.spans
        for one in (primary, replica):
            uninstrument_client(one)
        with antipode.scope() as scope:
            primary[DB].traced.delete_one({"_id": order})
            assert not scope.lineage


@pytest.mark.parametrize("order", ORDERS)
async def test_asyncio_clients(antipode_mongodb: MongoDBTopology, order: str) -> None:
    """The same with PyMongo's asyncio client."""
    with Tracing(PymongoInstrumentor(), order) as tracing:
        async with (
            AsyncMongoClient(**arguments(antipode_mongodb.primary)) as primary,
            AsyncMongoClient(**arguments(antipode_mongodb.replica)) as replica,
        ):
            for one, reads_from in ((primary, "primary"), (replica, "replica")):
                assert instrument_client(one, datastore="posts", reads_from=reads_from) is one  # type: ignore[arg-type]
            tracing.ours_is_on()
            with antipode.scope() as scope:
                await primary[DB].traced.replace_one({"_id": order}, {"n": 1}, upsert=True)
                assert len(exact(scope.lineage)) == 1
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                found = await replica[DB].traced.find_one({"_id": order})
                assert found == {"_id": order, "n": 1}
            if order == "before":
                assert tracing.spans
            for one in (primary, replica):
                uninstrument_client(one)
            with antipode.scope() as scope:
                await primary[DB].traced.delete_one({"_id": order})
                assert not scope.lineage
