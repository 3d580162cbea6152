package io.antipode.runtime;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.logging.Level;

/**
 * What barriers, held reads and lineages come to, reported to whoever exports it. Thread-safe. What
 * an exporter throws goes no further than the log.
 */
public final class Measures {
  /** What takes less is no wait: the pause between two polls is never shorter. */
  public static final Duration LEAST_WAIT = Duration.ofMillis(1);

  private static final List<Measure> MEASURES = new CopyOnWriteArrayList<>();

  /** Who is notified, in the thread that does it. */
  public interface Measure {
    /**
     * A barrier, a check or the question of a router is over.
     *
     * @param operation {@code barrier}, {@code check} or {@code route}
     * @param status {@code ok}, the code of the error, thrown or not, {@code cancelled}, or the
     *     name of an exception
     * @param error the same where the call threw; empty where it did not
     */
    void ended(String operation, String status, String error, Duration took);

    /**
     * A datastore kept somebody waiting.
     *
     * @param outcome what it came to
     * @param at {@code now}, or {@code read} where a floor held a read back
     */
    void waited(String datastore, String outcome, String at, Duration waited);

    /**
     * A dependency was not got.
     *
     * @param operation {@code barrier}, {@code check}, {@code route} or {@code read}
     */
    void unmet(String operation, String datastore, String outcome);

    /**
     * A lineage leaves as a text.
     *
     * @param carrier {@code baggage}, or {@code stored} with a value or in a message
     */
    void left(String carrier, int bytes, int entries);
  }

  private Measures() {}

  /** Notifies somebody from now on. */
  public static void follow(Measure measure) {
    MEASURES.add(measure);
  }

  /** Notifies somebody no more. */
  public static void unfollow(Measure measure) {
    MEASURES.remove(measure);
  }

  /** Returns whether nobody is notified. */
  public static boolean isIdle() {
    return MEASURES.isEmpty();
  }

  /** Notifies everybody. */
  public static void tell(Consumer<Measure> what) {
    for (Measure measure : MEASURES) {
      try {
        what.accept(measure);
      } catch (RuntimeException error) {
        Counts.LOG.log(Level.FINE, error, () -> "something was not measured");
      }
    }
  }
}
