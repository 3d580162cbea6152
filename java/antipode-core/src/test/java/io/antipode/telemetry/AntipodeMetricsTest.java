package io.antipode.telemetry;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.runtime.Counts;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AntipodeMetricsTest {
  private static final AttributeKey<String> DATASTORE =
      AttributeKey.stringKey("antipode.datastore");
  private static final AttributeKey<String> OPERATION =
      AttributeKey.stringKey("antipode.operation");

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
}
