"""What a consumer of huey runs, in a process of its own."""

from __future__ import annotations

import os

from huey import RedisHuey

from antipode.integrations import huey as antipode_huey
from tests.integration.queues import _jobs as jobs

antipode_huey.instrument()
huey = RedisHuey(os.environ["ANTIPODE_HUEY"], url=os.environ["ANTIPODE_HUEY_URL"], store_none=True)
read = huey.task()(jobs.read)
