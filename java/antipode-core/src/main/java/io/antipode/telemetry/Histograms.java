package io.antipode.telemetry;

import io.antipode.runtime.Measures;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.api.metrics.LongCounter;
import io.opentelemetry.api.metrics.LongHistogram;
import io.opentelemetry.api.metrics.Meter;
import java.time.Duration;
import java.util.List;

/** Records what is reported of barriers, waits and lineages. */
final class Histograms implements Measures.Measure {
  private static final AttributeKey<String> OPERATION =
      AttributeKey.stringKey("antipode.operation");
  private static final AttributeKey<String> STATUS = AttributeKey.stringKey("antipode.status");
  private static final AttributeKey<String> ERROR = AttributeKey.stringKey("error.type");
  private static final AttributeKey<String> DATASTORE =
      AttributeKey.stringKey("antipode.datastore");
  private static final AttributeKey<String> OUTCOME = AttributeKey.stringKey("antipode.outcome");
  private static final AttributeKey<String> AT = AttributeKey.stringKey("antipode.at");
  private static final AttributeKey<String> CARRIER = AttributeKey.stringKey("antipode.carrier");

  private final BoundedNames names;
  private final DoubleHistogram durations;
  private final DoubleHistogram waits;
  private final LongHistogram sizes;
  private final LongHistogram entries;
  private final LongCounter unmet;

  Histograms(Meter meter, BoundedNames names) {
    this.names = names;
    durations = seconds(meter, "antipode.barrier.duration");
    waits = seconds(meter, "antipode.wait.duration");
    sizes = numbers(meter, "antipode.lineage.size", "By", Buckets.BYTES);
    entries = numbers(meter, "antipode.lineage.entries", "{entry}", Buckets.ENTRIES);
    unmet = meter.counterBuilder("antipode.unmet_dependencies").setUnit("{dependency}").build();
  }

  private static DoubleHistogram seconds(Meter meter, String name) {
    return meter
        .histogramBuilder(name)
        .setUnit("s")
        .setExplicitBucketBoundariesAdvice(Buckets.SECONDS)
        .build();
  }

  private static LongHistogram numbers(Meter meter, String name, String unit, List<Long> buckets) {
    return meter
        .histogramBuilder(name)
        .ofLongs()
        .setUnit(unit)
        .setExplicitBucketBoundariesAdvice(buckets)
        .build();
  }

  private static double seconds(Duration duration) {
    return duration.toNanos() / 1e9;
  }

  @Override
  public void ended(String operation, String status, String error, Duration took) {
    AttributesBuilder attributes = Attributes.builder().put(OPERATION, operation);
    attributes.put(STATUS, status);
    if (!error.isEmpty()) {
      attributes.put(ERROR, error);
    }
    durations.record(seconds(took), attributes.build());
  }

  @Override
  public void waited(String datastore, String outcome, String at, Duration waited) {
    Attributes attributes =
        Attributes.of(DATASTORE, names.bounded(datastore), OUTCOME, outcome, AT, at);
    waits.record(seconds(waited), attributes);
  }

  @Override
  public void unmet(String operation, String datastore, String outcome) {
    String name = names.bounded(datastore);
    unmet.add(1, Attributes.of(OPERATION, operation, DATASTORE, name, OUTCOME, outcome));
  }

  @Override
  public void left(String carrier, int bytes, int entries) {
    Attributes attributes = Attributes.of(CARRIER, carrier);
    sizes.record(bytes, attributes);
    this.entries.record(entries, attributes);
  }
}
