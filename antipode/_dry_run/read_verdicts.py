"""The reads of a dry run: judged and written down as they are sent.

The verdict is that of docs/spec/dry-run.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from antipode._barrier.aliases import search, unsearched
from antipode._barrier.automatic import chosen
from antipode._barrier.plan import absent_of
from antipode._lineage.lineage import exact_of
from antipode._lineage.write_id import Promise
from antipode._runtime.call_site import caller
from antipode._runtime.metrics import count, log_once
from antipode._runtime.ruled import stands_for_both

from .notes import Notes, covers
from .records import UNWRITTEN, members, text, writes_text
from .source_lines import running_test
from .staleness_check import running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode._lineage.outcomes import Outcome
    from antipode._lineage.write_id import Dependency
    from antipode._runtime.observers import Client, Request

    from .declared_roles import DeclaredRoles
    from .notes import Guards
    from .source_lines import Place, Places
    from .staleness_check import Evidence

_NO_GUARDS: Guards = {}
_MOST_TOLD = 10_000


class RecordWriter(Protocol):
    """Writes a record down."""

    def __call__(
        self,
        kind: str,
        request: Request | None,
        place: Place | None,
        about: str,
        *,
        test: str | None,
    ) -> int:
        """The number of the record, of what *request* did."""
        ...


class JudgedReads:
    """Judges the reads of a process in *region*, and has findings observed."""

    def __init__(
        self,
        region: str,
        places: Places,
        put: RecordWriter,
        evidence: Evidence,
        roles: DeclaredRoles,
    ) -> None:
        """Write records by *put*."""
        self._region = region
        self._places = places
        self._put = put
        self._evidence = evidence
        self._roles = roles
        self._told: set[tuple[str, Place]] = set()
        self._observed: set[tuple[str, Place]] = set()

    def judge(self, request: Request, client: Client) -> None:
        """Judge a read that *client* is about to send, and write it down.

        Most have nothing to be judged by: this is part of every read.
        """
        self._evidence.over()
        declared = client.reads_from == "replica"
        if not declared and self._roles.known(client):
            return
        known, datastore = request.known, client.datastore
        exact: list[Dependency] = [*exact_of(known, datastore)]
        if known.promises:
            exact += [each for each in known.promises if each.datastore == datastore]
        if not exact:
            self._search(request, client)
            return
        if not declared:
            self._ask_role(request, client)
            return
        both = stands_for_both(datastore)
        if getattr(client, "own_logs", ()) and not both:
            return  # A server that took a write is no replica, whatever its client says.
        notes = request.notes
        guards = notes.guards if isinstance(notes, Notes) else _NO_GUARDS
        missed = [write for write in exact if not covers(guards, self._region, write)]
        verdict = "guarded"
        if missed:
            verdict = "automatic" if client.floors and chosen(client) else "unguarded"
        about = (
            f'"datastore":{text(datastore)},"verdict":"{verdict}"'
            f',"writes":{writes_text(missed or exact)}'
        )
        site, test = caller(), running_test()
        place = self._places.of((site.f_code, site.f_lineno))
        number = self._put("read", request, place, about, test=test)
        if verdict == "unguarded":
            self._found(datastore, place, missed)
        if not both:  # What one server takes to replicate is nothing.
            evidence = {"of": number} if test is None else {"test": test, "of": number}
            wanted, of = (missed, evidence) if missed else (exact, None)
            if number != UNWRITTEN and (missed or self._is_first(datastore, place)):
                self._look_into(client, place, wanted, of, test=test, request=request)

    def _is_first(self, datastore: str, place: Place) -> bool:
        """Whether no guarded read of *datastore* at *place* was observed."""
        if (datastore, place) in self._observed or len(self._observed) >= _MOST_TOLD:
            return False
        self._observed.add((datastore, place))
        return True

    def _search(self, request: Request, client: Client) -> None:
        """Have a lint where what the request depends on is in a store of here by another name."""
        if request.known.empty:
            return
        reader = client.datastore
        strangers = unsearched(absent_of(request.known), reader)
        if not strangers:
            return
        site, test = caller(), running_test()
        place = self._places.of((site.f_code, site.f_lineno))

        def tell(outcome: Outcome) -> None:
            named = outcome.write.datastore
            about = {"lint": "two-names", "datastore": named, "detail": outcome.cause}
            self._put("lint", request, place, members(about), test=test)

        search(strangers, reader, clock=client.clock, tell=tell)

    def _ask_role(self, request: Request, client: Client) -> None:
        """Have a lint where *client* reads from a replica that it does not say it reads from."""
        site, test = caller(), running_test()
        place = self._places.of((site.f_code, site.f_lineno))
        about = {"lint": "undeclared-replica", "datastore": client.datastore, "detail": ""}
        put = partial(self._put, "lint", request, place, members(about), test=test)
        self._roles.ask(client, put)

    def _found(self, datastore: str, place: Place, missed: Sequence[Dependency]) -> None:
        """Count an unguarded read, and log its place once."""
        finding = datastore, place
        count("unguarded_read", datastore)
        if finding not in self._told:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told.add(finding)
            log_once(
                "unguarded_read",
                datastore,
                place[:2],
                "%s:%s reads %r without a barrier for what its request wrote there: %s",
                place.file,
                place.line,
                datastore,
                ", ".join(sorted(map(str, missed))[:3]),
            )

    def _look_into(
        self,
        client: Client,
        place: Place,
        wanted: Sequence[Dependency],
        of: Mapping[str, Any] | None,
        *,
        test: str | None,
        request: Request,
    ) -> None:
        """Find out how long a read would have had to wait, and whether its server can show that.

        Args:
            client: which reads.
            place: where.
            wanted: what it depends on.
            of: what its evidence begins with; None for a guarded read, which has none.
            test: which runs.
            request: whose read it is.
        """
        datastore, since_s = client.datastore, client.clock.monotonic()
        seen = wanted if client.promises else [w for w in wanted if not isinstance(w, Promise)]
        if not seen:
            return
        if of is not None and not self._evidence.wants((datastore, place)):
            count("dry_run_evidence_dropped", datastore)
            return

        def tell(cause: str) -> None:
            about = {"lint": "unshowable", "datastore": datastore, "detail": cause}
            self._put("lint", request, place, members(about), test=test)

        self._evidence.seek(client, seen, of, runner=running(), since_s=since_s, tell=tell)
