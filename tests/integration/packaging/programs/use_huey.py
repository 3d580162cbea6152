"""huey alone: a task in a worker depends on what the request that enqueued it depends on."""

from answering import ASKED
from huey import MemoryHuey

import antipode
from antipode import Lineage
from antipode.integrations import huey as lineages

lineages.instrument()
huey = MemoryHuey()
depends = huey.task()(antipode.serialize)
with antipode.scope(Lineage([ASKED])):
    result = depends()
task = huey.dequeue()
assert task is not None
huey.execute(task)
assert antipode.deserialize(result.get()) == Lineage([ASKED])
