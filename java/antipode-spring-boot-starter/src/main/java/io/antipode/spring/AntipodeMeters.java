package io.antipode.spring;

import io.antipode.runtime.Counts;
import io.antipode.runtime.Measures;
import io.antipode.telemetry.BoundedNames;
import io.antipode.telemetry.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Meters of what the library measures and counts, by the names of the reference. Tags that it
 * leaves out are {@code none}: registries want each meter's tags alike.
 */
public final class AntipodeMeters implements MeterBinder, AutoCloseable {
  private static final String NONE = "none";

  private final BoundedNames names = new BoundedNames();
  private final List<Bound> bound = new CopyOnWriteArrayList<>();

  /** One series. */
  private record Series(Counter counter, Tags tags) {}

  /** What is reported for one registry. */
  private record Bound(Consumer<String> counted, Measures.Measure measure) {}

  /** Makes meters that are bound to no registry yet. */
  public AntipodeMeters() {}

  @Override
  public void bindTo(MeterRegistry registry) {
    Set<Series> known = ConcurrentHashMap.newKeySet();
    Bound made = new Bound(count -> counted(registry, known, count), new Timers(registry, names));
    bound.add(made);
    Counts.follow(made.counted);
    Measures.follow(made.measure);
  }

  @Override
  public void close() {
    for (Bound each : bound) {
      Counts.unfollow(each.counted);
      Measures.unfollow(each.measure);
    }
    bound.clear();
  }

  /** Something is counted for the first time: whoever does so is not to know of what fails here. */
  private void counted(MeterRegistry registry, Set<Series> known, String count) {
    try {
      for (Counts.Metric metric : Counts.all().keySet()) {
        Series series = metric.name().equals(count) ? series(metric) : null;
        if (series != null && known.add(series)) {
          FunctionCounter.builder(series.counter.name(), this, meters -> meters.sum(series))
              .tags(series.tags)
              .register(registry);
        }
      }
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.FINE, error, () -> "the count '" + count + "' has no meter");
    }
  }

  private @Nullable Series series(Counts.Metric metric) {
    Counter counter = Counter.of(metric.name());
    if (counter == null) {
      return null;
    }
    String datastore = metric.datastore().isEmpty() ? NONE : names.bounded(metric.datastore());
    Tags tags = Tags.of("antipode.datastore", datastore);
    return new Series(
        counter,
        counter.attribute().isEmpty() ? tags : tags.and(counter.attribute(), Counter.kind(metric)));
  }

  private double sum(Series series) {
    return Counts.all().entrySet().stream()
        .filter(entry -> series.equals(series(entry.getKey())))
        .mapToLong(entry -> entry.getValue())
        .sum();
  }
}
