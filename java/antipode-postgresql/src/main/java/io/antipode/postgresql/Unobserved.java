package io.antipode.postgresql;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.request.Standing;
import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What the application may write on the driver's own connection, while it has that. Whoever uses
 * the lineage asks for a position that covers it, on another connection: the application's may be
 * in the midst of a COPY. Thread-safe.
 */
final class Unobserved implements Standing {
  private static final Duration SOON = Duration.ofSeconds(1);

  private final PostgreSqlShim shim;

  /** The number of the application's connection's process. */
  private final String backend;

  private @Nullable Link link;

  /** What it came to in the end; null while the application has the connection. */
  private @Nullable Supplier<Lineage> end;

  /** On a connection that its process has this number for. */
  Unobserved(PostgreSqlShim shim, String backend) {
    this.shim = shim;
    this.backend = backend;
  }

  @Override
  public synchronized boolean isOver() {
    return end != null;
  }

  /**
   * The application gives it back: nothing more is written.
   *
   * @param found what it came to; null where the connection cannot say that
   */
  synchronized void ends(@Nullable Supplier<Lineage> found) {
    if (found == null) {
      Lineage last = ask();
      end = () -> last;
    } else {
      end = found;
    }
    disconnect();
  }

  @Override
  public synchronized Lineage get() {
    Supplier<Lineage> known = end;
    return known == null ? ask() : known.get();
  }

  private Lineage ask() {
    String datastore = shim.datastore();
    try {
      Link own = connected();
      if (own.ask(Look.present(backend)).get(0).getOrDefault("present", "").equals("t")) {
        return shim.found(own, own.ask(Look.SAMPLE).get(0), false, false).get();
      }
    } catch (SQLException | NoLsnException error) {
      disconnect();
    }
    Counts.count("incomplete", datastore);
    Counts.logOnce(
        "postgresql_unobserved",
        datastore,
        "",
        () ->
            "a lineage was used while the application had the driver's own connection to "
                + datastore
                + ", and no other connection shows what it wrote there: it is incomplete"
                + " (in_doubt). Give the connection back before");
    return Lineage.empty().marked(new Incomplete(datastore, "in_doubt"));
  }

  private Link connected() throws SQLException {
    Link held = link;
    if (held == null) {
      held = shim.connect(SOON);
      link = held;
    }
    return held;
  }

  private void disconnect() {
    Link held = link;
    link = null;
    if (held != null) {
      held.close();
    }
  }
}
