"""Celery alone: a task in a worker depends on what the request that sent it depends on."""

from answering import ASKED
from celery import Celery
from celery.contrib.testing.worker import start_worker

import antipode
from antipode import Lineage
from antipode.integrations import celery as lineages

lineages.instrument()
app = Celery("extras", broker="memory://", backend="cache+memory://")
app.conf.broker_connection_retry_on_startup = True


@app.task
def depends() -> str:
    return antipode.serialize()


with start_worker(app, perform_ping_check=False, pool="solo"), antipode.scope(Lineage([ASKED])):
    assert antipode.deserialize(depends.delay().get(timeout=20)) == Lineage([ASKED])
