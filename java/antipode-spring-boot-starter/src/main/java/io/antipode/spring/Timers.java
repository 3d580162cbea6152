package io.antipode.spring;

import io.antipode.runtime.Measures;
import io.antipode.telemetry.BoundedNames;
import io.antipode.telemetry.Buckets;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.List;

/** Records what is reported of barriers, waits and lineages in one registry. */
final class Timers implements Measures.Measure {
  private static final Duration[] SECONDS =
      Buckets.SECONDS.stream()
          .map(seconds -> Duration.ofNanos(Math.round(seconds * 1e9)))
          .toArray(Duration[]::new);

  private final MeterRegistry registry;
  private final BoundedNames names;

  Timers(MeterRegistry registry, BoundedNames names) {
    this.registry = registry;
    this.names = names;
  }

  private void record(String name, Duration duration, Tags tags) {
    Timer.builder(name)
        .serviceLevelObjectives(SECONDS)
        .tags(tags)
        .register(registry)
        .record(duration);
  }

  @Override
  public void ended(String operation, String status, String error, Duration took) {
    Tags tags = Tags.of("antipode.operation", operation, "antipode.status", status);
    record(
        "antipode.barrier.duration",
        took,
        tags.and("error.type", error.isEmpty() ? "none" : error));
  }

  @Override
  public void waited(String datastore, String outcome, String at, Duration waited) {
    Tags tags = Tags.of("antipode.datastore", names.bounded(datastore), "antipode.at", at);
    record("antipode.wait.duration", waited, tags.and("antipode.outcome", outcome));
  }

  @Override
  public void unmet(String operation, String datastore, String outcome) {
    Tags tags = Tags.of("antipode.operation", operation, "antipode.outcome", outcome);
    registry
        .counter(
            "antipode.unmet_dependencies", tags.and("antipode.datastore", names.bounded(datastore)))
        .increment();
  }

  @Override
  public void left(String carrier, int bytes, int entries) {
    Tags tags = Tags.of("antipode.carrier", carrier);
    summary("antipode.lineage.size", "bytes", Buckets.BYTES, tags).record(bytes);
    summary("antipode.lineage.entries", "entries", Buckets.ENTRIES, tags).record(entries);
  }

  /** Micrometer takes no bound of zero. */
  private DistributionSummary summary(String name, String unit, List<Long> buckets, Tags tags) {
    return DistributionSummary.builder(name)
        .baseUnit(unit)
        .serviceLevelObjectives(
            buckets.stream().filter(bound -> bound > 0).mapToDouble(Long::doubleValue).toArray())
        .tags(tags)
        .register(registry);
  }
}
