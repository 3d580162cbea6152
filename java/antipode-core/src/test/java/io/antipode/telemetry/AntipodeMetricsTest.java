package io.antipode.telemetry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnknownDatastoreException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AntipodeMetricsTest {
  private static final AttributeKey<String> DATASTORE =
      AttributeKey.stringKey("antipode.datastore");
  private static final AttributeKey<String> OPERATION =
      AttributeKey.stringKey("antipode.operation");
  private static final AttributeKey<String> STATUS = AttributeKey.stringKey("antipode.status");
  private static final AttributeKey<String> ERROR = AttributeKey.stringKey("error.type");
  private static final String UNKNOWN = "unknown_datastore";
  private static final Duration TEN_SECONDS = Duration.ofSeconds(10);

  private static MetricData named(Collection<MetricData> all, String name) {
    return all.stream().filter(metric -> metric.getName().equals(name)).findFirst().orElseThrow();
  }

  @Test
  void countsFromBeforeAndAfterAreExported() {
    InMemoryMetricReader reader = InMemoryMetricReader.create();
    SdkMeterProvider meters = SdkMeterProvider.builder().registerMetricReader(reader).build();
    OpenTelemetrySdk sdk = OpenTelemetrySdk.builder().setMeterProvider(meters).build();
    Counts.count("unscoped_transfer", "of this test");
    try (AntipodeMetrics metrics = AntipodeMetrics.register(sdk)) {
      Counts.count("unscoped_promise", "of this test");
      Counts.count("of_a_shim");
      Collection<MetricData> found = reader.collectAllMetrics();
      MetricData unscoped = named(found, "antipode.unscoped_operations");
      assertThat(unscoped.getUnit()).isEqualTo("{operation}");
      Map<Attributes, Long> points = new HashMap<>();
      unscoped
          .getLongSumData()
          .getPoints()
          .forEach(point -> points.put(point.getAttributes(), point.getValue()));
      assertThat(points)
          .containsEntry(Attributes.of(DATASTORE, "of this test", OPERATION, "transfer"), 1L)
          .containsEntry(Attributes.of(DATASTORE, "of this test", OPERATION, "promise"), 1L);
      assertThat(named(found, "antipode.of_a_shim").getUnit()).isEqualTo("{event}");
    }
    assertThat(reader.collectAllMetrics()).isEmpty();
    sdk.close();
  }

  @Test
  void barriersAndWhatTheyDidNotGetAreMeasured() {
    InMemoryMetricReader reader = InMemoryMetricReader.create();
    SdkMeterProvider meters = SdkMeterProvider.builder().registerMetricReader(reader).build();
    OpenTelemetrySdk sdk = OpenTelemetrySdk.builder().setMeterProvider(meters).build();
    try (AntipodeMetrics metrics = AntipodeMetrics.register(sdk);
        ScopeBlock request = Antipode.scope(Lineage.of(WriteId.of("of nobody", "log", 1)))) {
      BarrierOptions options = BarrierOptions.timeout(Duration.ofSeconds(1));
      Barriers.barrier(options.withExclude("of nobody"));
      assertThatThrownBy(() -> Barriers.barrier(options.withOnly("of nobody")))
          .isInstanceOf(UnknownDatastoreException.class);
      assertThat(Barriers.barrierAsync(options.withOnly("of nobody"))).failsWithin(TEN_SECONDS);
      request.scope().text();
      Collection<MetricData> found = reader.collectAllMetrics();
      Map<Attributes, Long> ended = new HashMap<>();
      named(found, "antipode.barrier.duration")
          .getHistogramData()
          .getPoints()
          .forEach(point -> ended.put(point.getAttributes(), point.getCount()));
      assertThat(ended)
          .isEqualTo(
              Map.of(
                  Attributes.of(OPERATION, "barrier", STATUS, "ok"),
                  1L,
                  Attributes.of(OPERATION, "barrier", STATUS, UNKNOWN, ERROR, UNKNOWN),
                  2L));
      assertThat(named(found, "antipode.unmet_dependencies").getLongSumData().getPoints())
          .singleElement()
          .satisfies(point -> assertThat(point.getValue()).isEqualTo(2));
      assertThat(named(found, "antipode.lineage.entries").getHistogramData().getPoints())
          .singleElement()
          .satisfies(point -> assertThat(point.getMax()).isEqualTo(1));
    }
    sdk.close();
  }
}
