"""Two regions of MongoDB: a replica set whose members reach each other through proxies."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode_testing._errors import ServerFailed
from antipode_testing.servers.replicated import ReplicatedTopology

from .link import Faults
from .node import MongoDBNode, launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._topology import Provider

# An initial synchronisation, an election and a rollback take a second or two each.
TIMEOUT_S = 30.0
SET_NAME = "antipode"
SETTINGS = {
    # Only the primary is copied from: otherwise a lag of one secondary would be another's.
    "chainingAllowed": False,
    "heartbeatIntervalMillis": 100,
    # No election happens on its own: a cut or frozen member would change who is primary.
    "electionTimeoutMillis": 86_400_000,
    "catchUpTakeoverDelayMillis": -1,
    # A new primary takes writes at once, instead of asking members that a test cut off.
    "catchUpTimeoutMillis": 0,
}


class MongoDBTopology(ReplicatedTopology[MongoDBNode]):
    """A MongoDB primary and secondaries of it; replica ``i`` keeps its number over every fault.

    Lag and faults touch what members send each other, heartbeats included, and no client: neither
    one that connects straight to a server nor one that discovers the set by `uri`.

    Every member votes, so that MongoDB commits a write (``w: "majority"``) only once a majority has
    it: of two, both. That is what can be rolled back. The default write concern is 1, or each plain
    write would wait out the lag. With ``voting=False`` the primary alone is a majority:
    ``"majority"`` never waits, and there is no `failover`.

    Elections happen only when a method here calls one. Tags: ``region: us``, secondaries ``eu``.

    Args:
        replicas: how many secondaries, at least one.
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        voting: whether they vote.
        config: further options of every ``mongod``, by their names on its command line;
            parameters as ``setParameter.<name>``.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if PyMongo is not installed.
        ServerMissing: on `start`, if there is no ``mongod``.
    """

    store: ClassVar[str] = "mongodb"

    def __init__(
        self,
        replicas: int = 1,
        *,
        lag_ms: float = 0.0,
        voting: bool = True,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        super().__init__(replicas, {**(config or {}), "replSet": SET_NAME}, provider, lag_ms)
        self._voting = voting

    @property
    def hosts(self) -> tuple[Address, ...]:
        """The members as the set and its clients know them: the first primary, then replicas."""
        return tuple(node.proxy.address for node in self._nodes)

    @property
    def set_url(self) -> str:
        """The connection string of a client that discovers the set."""
        return f"mongodb://{','.join(map(str, self.hosts))}/?replicaSet={SET_NAME}"

    def url(self, server: Address | None = None) -> str:
        """The connection string of a client that asks *server* alone, by default the primary."""
        return f"mongodb://{server or self.primary}/?directConnection=true"

    def set_lag(
        self, ms: float, *, replica: int | None = None, back_ms: float | None = None
    ) -> None:
        """Delay what secondaries receive by this many milliseconds; all of them by default.

        A ``majority`` write then takes as long, for it needs a secondary.

        Args:
            ms: the delay.
            replica: the number of the only secondary whose delay changes.
            back_ms: delay what the primary receives from secondaries, which is how far they have
                come, by this many milliseconds; None leaves that.
        """
        self._disturb(replica, lag_ms=ms)
        if back_ms is not None:
            self._shape(self._primary_node, replace(self._primary_node.faults, lag_ms=back_ms))

    def pause(self, *, replica: int | None = None) -> None:
        """Hold what passes between secondaries and other members; connections stay open."""
        self._disturb(replica, paused=True)

    def resume(self, *, replica: int | None = None) -> None:
        """Let what `pause` held go on."""
        self._disturb(replica, paused=False)
        self._reconnect(replica)

    def cut(self, *, replica: int | None = None) -> None:
        """Partition secondaries from every other member; the primary stays primary."""
        self._disturb(replica, cut=True)
        for node in self._others(replica):
            node.await_loss(self._primary_node)

    def heal(self, *, replica: int | None = None) -> None:
        """End the partition; a secondary then searches for its primary about once a second."""
        self._disturb(replica, cut=False)
        self._reconnect(replica)

    def stall(self, *, replica: int = 0) -> None:
        """Let a secondary receive writes and hear of later ones, but apply none of them.

        A read that waits for one then blocks until its ``maxTimeMS`` (code 50). The same read of a
        secondary that is paused or cut fails at once (code 72), for it has not heard of the write.
        """
        self._touched = True
        self._replica(replica).stall()

    def unstall(self, *, replica: int = 0) -> None:
        """Let a stalled secondary apply what it received."""
        self._replica(replica).unstall()

    def wait_replicated(self, *, replica: int | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """Return once secondaries have everything that the primary has at this moment.

        An old primary that has not joined again is not waited for.

        Raises:
            TopologyTimeout: they did not get it in time.
        """
        wanted = self._primary_node.position()
        for node in self._others(replica):
            node.await_position(wanted, timeout_s=timeout_s)

    def config(self, parameters: Mapping[str, Any], *, replica: int | None = None) -> None:
        """``setParameter`` on the primary, or on a replica; `reset` restores the values."""
        self._change(parameters, replica)

    def restart_primary(self, *, graceful: bool = True) -> None:
        """Restart the primary at its address and have it elected again, in a new term.

        Killed, it loses what its journal lacks, the writes of the last tenth of a second, but for
        those that it finds on a secondary. A majority must be in reach.
        """
        rebuild, self._rebuild = self._rebuild, True
        node = self._primary_node
        node.restart(graceful=graceful)
        ahead = max(self._others(None), key=lambda one: one.position())
        if ahead.position() > node.position():
            node.forgive(ahead)
        node.step_up(timeout_s=TIMEOUT_S)
        self._settle()
        self._rebuild = rebuild

    def failover(self, *, lose_unreplicated: bool = True, replica: int = 0) -> None:
        """Make a secondary the primary, in a new term; return when it takes writes.

        Losing what is unreplicated, the old primary is partitioned from the others. Alive, it stays
        a primary of the old term, as before it would notice, and takes writes that are not of
        ``w: "majority"``; see `rejoin`. The others learn by a forced reconfiguration that the
        promoted one alone votes, as an operator would.

        Args:
            lose_unreplicated: what the replica has not received is lost. Otherwise the old primary
                steps down, which waits for the replica, and becomes its secondary.
            replica: the number of the replica to promote.

        Raises:
            ConfigurationError: it is the primary already, does not vote, or lacks writes that a
                sibling has: MongoDB would not elect it.
        """
        node = self._candidate(replica)
        if not self._voting:
            raise ConfigurationError("its replicas do not vote: MongoDBTopology(voting=True)")
        if lose_unreplicated:
            self._lose(node)
        else:
            self._hand_over(node)
        self._leader = replica + 1

    def rejoin(self) -> bool:
        """Connect the primary before the last `failover` again; return once it follows the new one.

        A killed one is started again. Every member then votes again.

        Returns:
            Whether it rolled back writes that it alone had.
        """
        node = self._former_node
        if node is None:
            raise ConfigurationError("no failover cut the primary off: there is none to rejoin")
        if not node.server.running:
            node.restart(graceful=False)
        before = node.rollbacks()
        self._shape(node, Faults())
        node.await_position(self._primary_node.position(), timeout_s=TIMEOUT_S)
        self._former = None
        self._reconfigure(self._primary_node, voters=self._nodes)
        self._settle()
        return node.rollbacks() > before

    def reseed(self, *, replica: int = 0) -> None:
        """Restart a secondary with no data; return once it has copied the primary."""
        self._touched = True
        self._replica(replica).restart(graceful=False, wipe=True)
        self._settle(replica)

    @property
    def _former_node(self) -> MongoDBNode | None:
        return None if self._former is None else self._node(self._former)

    def _disturb(self, number: int | None, **faults: Any) -> None:
        self._touched = True
        for node in self._others(number):
            self._shape(node, replace(node.faults, **faults))

    def _reconnect(self, number: int | None) -> None:
        for node in self._others(number):
            if node is not self._primary_node:
                node.forgive(self._primary_node)

    def _others(self, number: int | None) -> list[MongoDBNode]:
        """One replica, or every member but the primary and one that a failover cut off."""
        if number is not None:
            return [self._replica(number)]
        spared = (self._primary_node, self._former_node)
        return [node for node in self._nodes if node not in spared]

    def _shape(self, node: MongoDBNode, faults: Faults) -> None:
        node.faults = faults
        for other in self._nodes:
            if other is not node:
                node.proxy.shape(other.identity, node.faults, other.faults)
                other.proxy.shape(node.identity, other.faults, node.faults)

    def _build(self) -> None:
        for name in ("primary", *(f"replica-{number}" for number in range(self._count))):
            self._nodes.append(launch(self._provider, name, self._config))
        self._initiate()
        self._settle()

    def _initiate(self) -> None:
        """Make a set of the primary alone, which takes no election, and let the others in."""
        first = self._nodes[0]
        initial = {
            "_id": SET_NAME,
            "settings": SETTINGS,
            "members": [self._member(0, votes=True)],
        }
        first.admin("replSetInitiate", initial)
        what = f"the first election of {first.address}"
        first.await_hello(lambda it: bool(it.get("isWritablePrimary")), what, timeout_s=TIMEOUT_S)
        first.admin("setDefaultRWConcern", defaultWriteConcern={"w": 1})
        self._reconfigure(first, voters=self._nodes if self._voting else [first])

    def _settle(self, replica: int | None = None) -> None:
        """Return once every secondary, or one, copies the primary and goes on doing so.

        Only writes show that: a secondary without a source, which it seeks once a second, has
        everything as long as nothing is written, and one may change its source after a write.
        """
        for _ in range(2):
            note = {"antipode": "every member copies the primary"}
            self._primary_node.admin("appendOplogNote", data=note, writeConcern={"w": 1})
            wanted = self._primary_node.position()
            for node in self._others(replica):
                node.await_copying(self._primary_node, wanted, timeout_s=TIMEOUT_S)

    def _member(self, index: int, *, votes: bool) -> dict[str, Any]:
        return {
            "_id": index,
            "host": str(self._nodes[index].proxy.address),
            "priority": int(votes),
            "votes": int(votes),
            "tags": {"region": "eu" if index else "us"},
        }

    def _reconfigure(self, node: MongoDBNode, *, voters: list[MongoDBNode]) -> None:
        """Inform a member who votes from now on; it needs no majority for that."""
        configuration = node.configuration()
        # Above whatever another member may have learned meanwhile.
        configuration["version"] += random.randint(1, 1000)  # noqa: S311 - nothing secret
        configuration["members"] = [
            self._member(index, votes=one in voters) for index, one in enumerate(self._nodes)
        ]
        node.admin("replSetReconfig", configuration, force=True)

    def _lose(self, node: MongoDBNode) -> None:
        wanted = node.position()
        self._shape(self._primary_node, Faults(cut=True))
        siblings = [one for one in self._nodes if one not in (node, self._primary_node)]
        if any(one.position() > wanted for one in siblings if one.server.running):
            self._shape(self._primary_node, Faults())
            raise ConfigurationError(f"{node.address} lacks writes that another replica has")
        self._rebuild = True
        self._shape(node, Faults())
        node.unstall()
        self._reconfigure(node, voters=[node])
        node.step_up(timeout_s=TIMEOUT_S)
        self._former = self._leader

    def _hand_over(self, node: MongoDBNode) -> None:
        self._rebuild = True
        old = self._primary_node
        old.admin("replSetStepDown", 2 * TIMEOUT_S, secondaryCatchUpPeriodSecs=int(TIMEOUT_S))
        node.await_position(old.position(), timeout_s=TIMEOUT_S)
        node.step_up(timeout_s=TIMEOUT_S)

    def _undo(self) -> None:
        from pymongo.errors import PyMongoError

        try:
            super()._undo()
        except PyMongoError as error:
            raise ServerFailed(f"a member of the set refused: {error}") from error

    def _repair(self) -> None:
        for node in self._nodes:
            node.unstall()
            self._shape(node, Faults())
        self._settle()
