"""Users, queues and the exchange in the stores of docker-compose.yml: the service `data` there."""

from __future__ import annotations

import signal
from pathlib import Path

from antipode_testing import Address, ServerFailed, wait_until
from antipode_testing.servers.rabbitmq.management import PASSWORD, USER, Management

from ._graph import edges
from ._servers import EXCHANGE, REGIONS, declare
from ._services import seed

_TIMEOUT_S = 120.0
_DONE = Path("/tmp/done")  # noqa: S108 - of the container, whose health it is


def _federated() -> bool:
    """Whether eu gets what is published in us: its link runs, and us knows its binding."""
    us, eu = (Management(Address(f"rabbitmq-{region}", 15672)) for region in REGIONS)
    try:
        links = eu.get("federation-links")
        bindings = us.get(f"exchanges/%2f/{EXCHANGE}/bindings/source")
    except ServerFailed:
        return False  # The plugin answers 500 while links come and go.
    if not any(it.get("exchange") == EXCHANGE and it.get("status") == "running" for it in links):
        return False
    known = [it["routing_key"] for it in bindings if it["destination"].startswith("federation:")]
    return "#" in known


def main() -> None:
    """Put them there, then stay: a container that ended would look like one that failed."""
    seed(("redis-us", 6379), edges())
    for region in REGIONS:
        declare(f"amqp://{USER}:{PASSWORD}@rabbitmq-{region}:5672/%2f", region)
    wait_until(_federated, what="the brokers to federate", timeout_s=_TIMEOUT_S, interval_s=0.2)
    _DONE.touch()
    signal.pause()


if __name__ == "__main__":
    main()
