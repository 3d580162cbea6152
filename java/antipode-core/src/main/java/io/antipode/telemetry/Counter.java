package io.antipode.telemetry;

import io.antipode.runtime.Counts;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What counts are called where they are exported. Several may be one counter, distinguished by an
 * attribute.
 *
 * @param name with the prefix
 * @param unit of what is counted, in the singular
 * @param attribute what distinguishes the counts that it is made of; empty where it is one
 */
public record Counter(String name, String unit, String attribute) {
  private static final Map<String, Counter> COUNTERS = new HashMap<>();

  static {
    for (String what :
        new String[] {"read", "write", "append", "transfer", "barrier", "promise", "response"}) {
      add("unscoped_" + what, "unscoped_operations", "operation", "antipode.operation");
    }
    for (String why : new String[] {"forged", "old", "unreadable"}) {
      add("session_" + why, "ignored_sessions", "cookie", "antipode.reason");
    }
    add("dropped_for_size", "truncated_lineages", "lineage", "antipode.reason");
    add("dropped_for_egress", "truncated_lineages", "lineage", "antipode.reason");
    lineages();
    reads();
    barriers();
    messages();
  }

  private static void lineages() {
    add("uncovered_write", "uncovered_writes", "write");
    add("presigned", "presigned_requests", "request");
    add("unstored_lineage", "unstored_lineages", "write");
    add("incomplete", "incomplete_marks", "mark");
    add("session_unset", "unset_sessions", "response");
    add("stripped", "stripped_lineages", "request");
    add("after_response_write", "after_response_writes", "write");
    add("late_response", "late_responses", "response");
    add("unreadable", "unreadable_lineages", "lineage");
    add("scope_out_of_order", "scopes_out_of_order", "scope");
    add("generator_scope", "generator_scopes", "write");
    add("baggage_over_limit", "baggage_overflows", "header");
    add("grpc_metadata_over_limit", "grpc_metadata_overflows", "call");
  }

  private static void reads() {
    add("served_stale", "served_stale_reads", "read");
    add("reads_at_primary", "reads_at_primary", "read");
    add("unguarded_read", "unguarded_reads", "read");
    add("read_before_commit", "reads_before_commit", "read");
    add("sent_before_commit", "sent_before_commit", "transaction");
    add("dry_run_evidence_dropped", "dropped_evidence", "read");
    add("dry_run_unwritten", "unwritten_dry_runs", "run");
    add("unsampled_read", "unsampled_reads", "read");
    add("unread_lineage", "unread_lineages", "read");
    add("companion_absent", "absent_companions", "value");
    add("foreign", "foreign_companions", "value");
  }

  private static void barriers() {
    add("aged", "aged_dependencies", "dependency");
    add("polls", "polls", "poll");
    add("poll_failed", "failed_polls", "poll");
    add("fences", "fences", "fence");
    add("fence_failed", "failed_fences", "fence");
    add("blocked_loop", "blocked_loops", "barrier");
    add("unknown_store", "unknown_stores", "barrier");
    add("client_not_made", "clients_not_made", "barrier");
    add("open_branches", "barriers_with_open_branches", "barrier");
    add("floor_unused", "unused_floors", "request");
    add("call_unnamed", "unnamed_calls", "call");
    add("call_repeated", "repeated_calls", "call");
    add("two_names", "stores_with_two_names", "barrier");
    add("unnamed_client", "unnamed_clients", "client");
    add("promise_abandoned", "abandoned_promises", "promise");
    add("unknown_function", "unknown_functions", "statement");
    add("promise_fulfilled_first", "kept_promises", "promise");
    add("log_history_noted", "noted_promotions", "promotion");
  }

  private static void messages() {
    add("message_deferred", "deferred_messages", "message");
    add("message_expired", "expired_messages", "message");
    add("message_dead_lettered", "dead_lettered_messages", "message");
    add("unconfirmed_publish", "unconfirmed_publications", "message");
    add("unheard_publish", "unheard_publications", "message");
    add("receipts_lost", "lost_receipts", "queue");
    add("baggage_replaced", "replaced_baggage", "message");
    add("baggage_dropped", "dropped_baggage_members", "member");
  }

  private static void add(String count, String name, String unit) {
    add(count, name, unit, "");
  }

  private static void add(String count, String name, String unit, String attribute) {
    COUNTERS.put(count, new Counter("antipode." + name, unit, attribute));
  }

  /** Returns all that are known, by the names of their counts. */
  static Map<String, Counter> all() {
    return Collections.unmodifiableMap(COUNTERS);
  }

  /** Returns what a count is part of; null for those of barriers, which are in a histogram. */
  public static @Nullable Counter of(String count) {
    if (count.startsWith("barrier_")) {
      return null;
    }
    Counter known = COUNTERS.get(count);
    return known == null ? new Counter("antipode." + count, "event", "") : known;
  }

  /** Returns what distinguishes a count from the others of its counter: its last word. */
  public static String kind(Counts.Metric count) {
    return count.name().substring(count.name().lastIndexOf('_') + 1);
  }
}
