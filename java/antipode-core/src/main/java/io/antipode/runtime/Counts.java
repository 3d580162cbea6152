package io.antipode.runtime;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Counts of what must never pass unseen, since the process started, and the log that says each
 * thing once. Thread-safe.
 */
public final class Counts {
  /** The library's log. */
  public static final Logger LOG = Logger.getLogger("antipode");

  /** The datastore of what is counted once there are too many names: they come from outside. */
  public static final String OTHER = "_OTHER";

  private static final int MOST_COUNTS = 2_000;
  private static final int MOST_LOGGED = 10_000;
  private static final long SELDOM_NS = 60_000_000_000L;

  private static final Map<Metric, LongAdder> COUNTS = new ConcurrentHashMap<>();
  private static final List<Consumer<String>> LISTENERS = new CopyOnWriteArrayList<>();
  private static final Set<Entry> LOGGED = ConcurrentHashMap.newKeySet();

  /** Who is notified of each count. */
  private static volatile @Nullable BiConsumer<String, String> observer;

  /** When each was last logged. */
  private static final Map<Metric, Long> TOLD = new ConcurrentHashMap<>();

  /**
   * What is counted.
   *
   * @param name a name of the reference
   * @param datastore the datastore or service it is about; empty where it is about none
   */
  public record Metric(String name, String datastore) implements Comparable<Metric> {
    @Override
    public int compareTo(Metric other) {
      int order = name.compareTo(other.name);
      return order != 0 ? order : datastore.compareTo(other.datastore);
    }
  }

  private record Entry(String name, String datastore, Object place) {}

  private Counts() {}

  /** Counts one of what is about no datastore. */
  public static void count(String name) {
    count(name, "");
  }

  /** Counts one. */
  public static void count(String name, String datastore) {
    BiConsumer<String, String> told = observer;
    if (told != null) {
      told.accept(name, datastore);
    }
    Metric metric = new Metric(name, datastore);
    LongAdder held = COUNTS.get(metric);
    if (held == null) {
      Metric kept = COUNTS.size() < MOST_COUNTS ? metric : new Metric(name, OTHER);
      held = COUNTS.computeIfAbsent(kept, absent -> new LongAdder());
      held.increment();
      LISTENERS.forEach(listener -> listener.accept(name));
      return;
    }
    held.increment();
  }

  /** Calls an observer with the name and datastore of each count from now on, in its thread. */
  public static void observe(BiConsumer<String, String> other) {
    observer = other;
  }

  /** Calls an observer no more; another one is left alone. */
  public static void unobserve(BiConsumer<String, String> ended) {
    if (ended.equals(observer)) {
      observer = null;
    }
  }

  /** Calls a listener with each name that was counted, and with those that will be. */
  public static void follow(Consumer<String> listener) {
    LISTENERS.add(listener);
    COUNTS.keySet().forEach(metric -> listener.accept(metric.name));
  }

  /** Calls a listener no more. */
  public static void unfollow(Consumer<String> listener) {
    LISTENERS.remove(listener);
  }

  /** Returns all counts. */
  public static Map<Metric, Long> all() {
    Map<Metric, Long> counts = new TreeMap<>();
    COUNTS.forEach((metric, number) -> counts.put(metric, number.sum()));
    return counts;
  }

  /** Logs a warning, once a minute at most for each name and datastore. */
  public static void logSeldom(String name, String datastore, Supplier<String> message) {
    long now = System.nanoTime();
    Metric metric = new Metric(name, datastore);
    Long told = TOLD.get(metric);
    if (told == null ? TOLD.size() >= MOST_COUNTS : now - told < SELDOM_NS) {
      return;
    }
    boolean isFirst =
        told == null ? TOLD.putIfAbsent(metric, now) == null : TOLD.replace(metric, told, now);
    if (isFirst) {
      LOG.warning(message);
    }
  }

  /** Logs a warning, once for each name, datastore and place. */
  public static void logOnce(
      String name, String datastore, Object place, Supplier<String> message) {
    if (LOGGED.size() < MOST_LOGGED && LOGGED.add(new Entry(name, datastore, place))) {
      LOG.warning(message);
    }
  }
}
