package io.antipode.telemetry;

import io.antipode.runtime.Counts;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.metrics.ObservableLongCounter;
import io.opentelemetry.api.metrics.ObservableLongMeasurement;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * Exports the library's counts as observable counters. They begin with the process, whenever they
 * are registered.
 */
public final class AntipodeMetrics implements AutoCloseable {
  private static final AttributeKey<String> DATASTORE =
      AttributeKey.stringKey("antipode.datastore");
  private static final int MOST_DATASTORES = 64;

  /**
   * A counter.
   *
   * @param name without the prefix
   * @param attribute what tells the counts apart that it is made of; empty where it is one
   */
  private record Row(String name, String unit, String attribute) {}

  private static final Map<String, Row> ROWS = new HashMap<>();

  static {
    for (String what :
        new String[] {"write", "append", "transfer", "barrier", "promise", "response"}) {
      ROWS.put("unscoped_" + what, new Row("unscoped_operations", "operation", "operation"));
    }
    row("uncovered_write", "uncovered_writes", "write");
    row("unstored_lineage", "unstored_lineages", "write");
    row("incomplete", "incomplete_marks", "mark");
    row("stripped", "stripped_lineages", "request");
    row("after_response_write", "after_response_writes", "write");
    row("late_response", "late_responses", "response");
    row("unreadable", "unreadable_lineages", "lineage");
    ROWS.put("dropped_for_size", new Row("truncated_lineages", "lineage", "reason"));
    ROWS.put("dropped_for_egress", new Row("truncated_lineages", "lineage", "reason"));
    row("aged", "aged_dependencies", "dependency");
    row("looks", "looks", "look");
    row("look_unreachable", "failed_looks", "look");
    row("fences", "fences", "fence");
    row("fence_failed", "failed_fences", "fence");
    row("unsampled_read", "unsampled_reads", "read");
    row("served_stale", "served_stale_reads", "read");
    row("unknown_store", "unknown_stores", "barrier");
    row("scope_out_of_order", "scopes_out_of_order", "scope");
    row("unread_lineage", "unread_lineages", "read");
    row("companion_absent", "absent_companions", "value");
    row("foreign", "foreign_companions", "value");
    row("promise_abandoned", "abandoned_promises", "promise");
    row("promise_fulfilled_first", "kept_promises", "promise");
    row("log_history_noted", "noted_promotions", "promotion");
    row("baggage_over_limit", "baggage_overflows", "header");
    row("grpc_metadata_over_limit", "grpc_metadata_overflows", "call");
  }

  private static void row(String count, String name, String unit) {
    ROWS.put(count, new Row(name, unit, ""));
  }

  private final Meter meter;
  private final Map<String, ObservableLongCounter> counters = new ConcurrentHashMap<>();
  private final Set<String> datastores = ConcurrentHashMap.newKeySet();
  private final Consumer<String> listener = this::counted;

  private AntipodeMetrics(Meter meter) {
    this.meter = meter;
  }

  /** Exports the counts by an SDK until what is returned is closed. */
  public static AntipodeMetrics register(OpenTelemetry openTelemetry) {
    AntipodeMetrics metrics = new AntipodeMetrics(openTelemetry.getMeter("antipode"));
    Counts.follow(metrics.listener);
    return metrics;
  }

  @Override
  public void close() {
    Counts.unfollow(listener);
    counters.values().forEach(ObservableLongCounter::close);
    counters.clear();
  }

  private static Row row(String count) {
    return ROWS.getOrDefault(count, new Row(count, "event", ""));
  }

  /** Something is counted, perhaps for the first time. Barriers are in a histogram instead. */
  private void counted(String count) {
    if (!count.startsWith("barrier_")) {
      Row row = row(count);
      counters.computeIfAbsent(
          row.name,
          name ->
              meter
                  .counterBuilder("antipode." + name)
                  .setUnit("{" + row.unit + "}")
                  .buildWithCallback(measurement -> observe(row, measurement)));
    }
  }

  private void observe(Row row, ObservableLongMeasurement measurement) {
    Map<Attributes, Long> sums = new HashMap<>();
    Counts.all()
        .forEach(
            (metric, number) -> {
              if (row(metric.name()).name.equals(row.name)) {
                sums.merge(attributes(row, metric), number, Long::sum);
              }
            });
    sums.forEach((attributes, number) -> measurement.record(number, attributes));
  }

  private Attributes attributes(Row row, Counts.Metric metric) {
    AttributesBuilder attributes = Attributes.builder();
    if (!metric.datastore().isEmpty()) {
      attributes.put(DATASTORE, bounded(metric.datastore()));
    }
    if (!row.attribute.isEmpty()) {
      int last = metric.name().lastIndexOf('_');
      attributes.put("antipode." + row.attribute, metric.name().substring(last + 1));
    }
    return attributes.build();
  }

  /** Names come from outside: the first are kept. */
  private String bounded(String datastore) {
    return datastores.contains(datastore)
            || (datastores.size() < MOST_DATASTORES && datastores.add(datastore))
        ? datastore
        : Counts.OTHER;
  }
}
