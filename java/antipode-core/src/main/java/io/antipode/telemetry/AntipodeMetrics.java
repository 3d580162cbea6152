package io.antipode.telemetry;

import io.antipode.runtime.Counts;
import io.antipode.runtime.Measures;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.metrics.ObservableLongCounter;
import io.opentelemetry.api.metrics.ObservableLongMeasurement;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * Exports what barriers, held reads and lineages come to as histograms, and the library's counts as
 * observable counters, which begin with the process, whenever they are registered.
 */
public final class AntipodeMetrics implements AutoCloseable {
  private static final AttributeKey<String> DATASTORE =
      AttributeKey.stringKey("antipode.datastore");

  private final Meter meter;
  private final Map<String, ObservableLongCounter> counters = new ConcurrentHashMap<>();
  private final BoundedNames names = new BoundedNames();
  private final Consumer<String> listener = this::counted;
  private final Measures.Measure measure;

  private AntipodeMetrics(Meter meter) {
    this.meter = meter;
    this.measure = new Histograms(meter, names);
  }

  /** Exports by an SDK until what is returned is closed. */
  public static AntipodeMetrics register(OpenTelemetry openTelemetry) {
    AntipodeMetrics metrics = new AntipodeMetrics(openTelemetry.getMeter("antipode"));
    Counts.follow(metrics.listener);
    Measures.follow(metrics.measure);
    return metrics;
  }

  @Override
  public void close() {
    Measures.unfollow(measure);
    Counts.unfollow(listener);
    counters.values().forEach(ObservableLongCounter::close);
    counters.clear();
  }

  /** Something is counted, perhaps for the first time. */
  private void counted(String count) {
    Counter counter = Counter.of(count);
    if (counter != null) {
      counters.computeIfAbsent(
          counter.name(),
          name ->
              meter
                  .counterBuilder(name)
                  .setUnit("{" + counter.unit() + "}")
                  .buildWithCallback(measurement -> observe(counter, measurement)));
    }
  }

  private void observe(Counter counter, ObservableLongMeasurement measurement) {
    Map<Attributes, Long> sums = new HashMap<>();
    Counts.all()
        .forEach(
            (metric, number) -> {
              Counter found = Counter.of(metric.name());
              if (found != null && found.name().equals(counter.name())) {
                sums.merge(attributes(counter, metric), number, Long::sum);
              }
            });
    sums.forEach((attributes, number) -> measurement.record(number, attributes));
  }

  private Attributes attributes(Counter counter, Counts.Metric metric) {
    AttributesBuilder attributes = Attributes.builder();
    if (!metric.datastore().isEmpty()) {
      attributes.put(DATASTORE, names.bounded(metric.datastore()));
    }
    if (!counter.attribute().isEmpty()) {
      attributes.put(counter.attribute(), Counter.kind(metric));
    }
    return attributes.build();
  }
}
