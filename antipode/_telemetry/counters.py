"""What each count of :func:`antipode.telemetry.metrics` is called as an OpenTelemetry counter."""

from __future__ import annotations

from typing import NamedTuple


class Counter(NamedTuple):
    """An observable counter. Several counts may share one, distinguished by *kind*.

    Attributes:
        name: after OpenTelemetry's conventions: dots, lower case, plural.
        unit: an annotation in braces, of what is counted.
        description: for people.
        kind: an attribute and its value; None without.
    """

    name: str
    unit: str
    description: str
    kind: tuple[str, str] | None = None


def _unscoped(operation: str) -> Counter:
    return Counter(
        "antipode.unscoped_operations",
        "{operation}",
        "What found no scope, so that it entered no lineage",
        ("antipode.operation", operation),
    )


def _truncated(reason: str) -> Counter:
    return Counter(
        "antipode.truncated_lineages",
        "{lineage}",
        "Texts in which entries of a datastore were dropped and marked as missing",
        ("antipode.reason", reason),
    )


def _ignored_session(reason: str) -> Counter:
    return Counter(
        "antipode.ignored_sessions",
        "{cookie}",
        "Session cookies that were not believed",
        ("antipode.reason", reason),
    )


#: By the name of the count; docs/reference/telemetry.md lists them.
COUNTERS: dict[str, Counter] = {
    "after_response_write": Counter(
        "antipode.after_response_writes",
        "{write}",
        "Writes after the response had been sent: whoever got it does not depend on them",
    ),
    "aged": Counter(
        "antipode.aged_dependencies",
        "{dependency}",
        "Dependencies on unknown logs past the horizon, which passed",
    ),
    "baggage_dropped": Counter(
        "antipode.dropped_baggage_members",
        "{member}",
        "Members of messages' baggage that exceeded its limits",
    ),
    "baggage_over_limit": Counter(
        "antipode.baggage_overflows",
        "{header}",
        "Headers in which other members were cut off so that the lineage fits",
    ),
    "baggage_replaced": Counter(
        "antipode.replaced_baggage",
        "{message}",
        "Messages whose baggage header was of no type that propagators read",
    ),
    "companion_absent": Counter(
        "antipode.absent_companions", "{value}", "Values without a stored lineage"
    ),
    "dropped_for_egress": _truncated("egress"),
    "dropped_for_size": _truncated("size"),
    "dry_run_evidence_dropped": Counter(
        "antipode.dropped_evidence",
        "{read}",
        "Unguarded reads of a dry run that were not observed: enough were, or it was too late",
    ),
    "dry_run_unwritten": Counter(
        "antipode.unwritten_dry_runs",
        "{run}",
        "Dry runs whose file could not be written any more",
    ),
    "fence_failed": Counter(
        "antipode.failed_fences", "{fence}", "Primaries that reported no position for a fence"
    ),
    "fences": Counter(
        "antipode.fences",
        "{fence}",
        "Positions of primaries that stood in for missing writes",
    ),
    "foreign": Counter(
        "antipode.foreign_companions",
        "{value}",
        "Values that a plain client overwrote, so that their stored lineage is another's",
    ),
    "grpc_metadata_over_limit": Counter(
        "antipode.grpc_metadata_overflows",
        "{call}",
        "Requests and answers whose metadata left too little room for their lineage",
    ),
    "incomplete": Counter(
        "antipode.incomplete_marks",
        "{mark}",
        "Marks that a lineage misses something: writes in doubt, unsampled positions",
    ),
    "log_history_noted": Counter(
        "antipode.noted_promotions",
        "{promotion}",
        "Promotions whose end of log was recorded for the replicas",
    ),
    "message_dead_lettered": Counter(
        "antipode.dead_lettered_messages",
        "{message}",
        "Messages that a consumer gave up: what they depend on is lost, or never came",
    ),
    "message_deferred": Counter(
        "antipode.deferred_messages",
        "{message}",
        "Messages that went back to the broker until what they depend on is visible",
    ),
    "message_expired": Counter(
        "antipode.expired_messages",
        "{message}",
        "Deferred messages whose time to live was over before what they depend on was visible",
    ),
    "poll_failed": Counter(
        "antipode.failed_polls", "{poll}", "Polls of servers that failed and were repeated"
    ),
    "polls": Counter("antipode.polls", "{poll}", "How often a server was asked what it shows"),
    "presigned": Counter(
        "antipode.presigned_requests",
        "{request}",
        "Requests that were only signed: who sends them is not followed",
    ),
    "promise_abandoned": Counter(
        "antipode.abandoned_promises", "{promise}", "Promises that this process gave up"
    ),
    "promise_fulfilled_first": Counter(
        "antipode.kept_promises",
        "{promise}",
        "Promises that this process gave up and that were fulfilled before",
    ),
    "read_before_commit": Counter(
        "antipode.reads_before_commit",
        "{read}",
        "Reads and barriers that cannot see what their request wrote in an open transaction",
    ),
    "open_branches": Counter(
        "antipode.barriers_with_open_branches",
        "{barrier}",
        "Barriers and checks of requests that had branches running, whose writes nobody waits for",
    ),
    "sent_before_commit": Counter(
        "antipode.sent_before_commit",
        "{transaction}",
        "Open transactions whose request sent something that does not depend on what they wrote",
    ),
    "receipts_lost": Counter(
        "antipode.lost_receipts", "{queue}", "Times at which receipts of messages began again"
    ),
    "unconfirmed_publish": Counter(
        "antipode.unconfirmed_publications", "{message}", "Publications without confirms"
    ),
    "uncovered_write": Counter(
        "antipode.uncovered_writes",
        "{write}",
        "Writes without a position: their lineage is marked as incomplete",
    ),
    "unguarded_read": Counter(
        "antipode.unguarded_reads",
        "{read}",
        "In a dry run: reads at a replica without a barrier for what their request wrote there",
    ),
    "unheard_publish": Counter(
        "antipode.unheard_publications",
        "{message}",
        "Publications to exchanges that receipts do not listen to: they entered no lineage",
    ),
    "blocked_loop": Counter(
        "antipode.blocked_loops",
        "{barrier}",
        "Barriers and checks that blocked the event loop of their thread",
    ),
    "generator_scope": Counter(
        "antipode.generator_scopes",
        "{write}",
        "Writes of callers that entered the scope of a generator at its yield",
    ),
    "scope_out_of_order": Counter(
        "antipode.scopes_out_of_order",
        "{scope}",
        "Scopes that ended while one that was opened later was current",
    ),
    "unknown_store": Counter(
        "antipode.unknown_stores",
        "{barrier}",
        "Barriers and checks that let a datastore pass that is none of this process",
    ),
    "client_not_made": Counter(
        "antipode.clients_not_made",
        "{barrier}",
        "Barriers and checks that left to reads what a rule names, since its client is not made",
    ),
    "unnamed_client": Counter(
        "antipode.unnamed_clients",
        "{client}",
        "Clients of stores that have rules, at addresses that no rule names",
    ),
    "floor_unused": Counter(
        "antipode.unused_floors",
        "{request}",
        "Requests that left what a rule names to reads, of which there was none",
    ),
    "two_names": Counter(
        "antipode.stores_with_two_names",
        "{barrier}",
        "Barriers and checks that found a store of this process under another name",
    ),
    "unread_lineage": Counter(
        "antipode.unread_lineages",
        "{read}",
        "Reads that show nothing of the stored lineages of what they are made of",
    ),
    "unreadable": Counter(
        "antipode.unreadable_lineages",
        "{lineage}",
        "Lineages that arrived or were stored, and could not be decoded",
    ),
    "unstored_lineage": Counter(
        "antipode.unstored_lineages",
        "{write}",
        "Writes whose lineage could not be stored with the value",
    ),
    "unknown_function": Counter(
        "antipode.unknown_functions",
        "{statement}",
        "Statements that call a function which may write, and is not declared to read only",
    ),
    "unsampled_read": Counter(
        "antipode.unsampled_reads",
        "{read}",
        "Reads whose covering position could not be sampled",
    ),
    "late_response": Counter(
        "antipode.late_responses", "{response}", "Responses whose request was over already"
    ),
    "served_stale": Counter(
        "antipode.served_stale_reads",
        "{read}",
        "Reads that automatic barriers let go although their request depends on more",
    ),
    "reads_at_primary": Counter(
        "antipode.reads_at_primary",
        "{read}",
        "Reads that went to the primary because a replica did not show what they depend on",
    ),
    "call_unnamed": Counter(
        "antipode.unnamed_calls",
        "{call}",
        "Functions of calls.once that ran in a call without a name",
    ),
    "call_repeated": Counter(
        "antipode.repeated_calls", "{call}", "Calls that got the reply of an earlier attempt"
    ),
    "session_forged": _ignored_session("forged"),
    "session_old": _ignored_session("old"),
    "session_unreadable": _ignored_session("unreadable"),
    "session_unset": Counter(
        "antipode.unset_sessions",
        "{response}",
        "Responses that wrote and set no session cookie, because a shared cache may keep them",
    ),
    "stripped": Counter(
        "antipode.stripped_lineages",
        "{request}",
        "Requests that were sent with a lineage and came without",
    ),
    "unscoped_response": _unscoped("response"),
    "unscoped_append": _unscoped("append"),
    "unscoped_barrier": _unscoped("barrier"),
    "unscoped_promise": _unscoped("promise"),
    "unscoped_read": _unscoped("read"),
    "unscoped_transfer": _unscoped("transfer"),
    "unscoped_write": _unscoped("write"),
}


def counter_of(count: str) -> Counter | None:
    """The counter that exports *count*; None where the barrier's histogram does already."""
    if count.startswith("barrier_"):
        return None
    known = COUNTERS.get(count)
    if known is not None:
        return known
    return Counter(f"antipode.{count}", "{event}", "A count of antipode.telemetry.metrics()")
