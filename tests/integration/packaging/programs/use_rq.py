"""RQ alone: a job in a worker depends on what the request that enqueued it depends on."""

import contextvars
import sys
import uuid

import redis
import rq
from answering import ASKED

import antipode
from antipode import Lineage
from antipode.integrations import rq as lineages

lineages.instrument()
host, port = sys.argv[1:]
client = redis.Redis(host, int(port))
queue = rq.Queue(f"extras-{uuid.uuid4().hex}", connection=client)
with antipode.scope(Lineage([ASKED])):
    job = queue.enqueue(antipode.serialize)
worker = rq.SimpleWorker([queue], connection=client)
contextvars.Context().run(worker.work, burst=True)
assert antipode.deserialize(job.return_value(refresh=True)) == Lineage([ASKED])
queue.delete(delete_jobs=True)
