package io.antipode.postgresql;

import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.runtime.Counts;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A write that was committed and not flushed: a crash of the primary would undo it. Asked for again
 * once its lineage is used: until the flush has passed it, it is in doubt. Thread-safe.
 */
final class Unflushed implements Supplier<Lineage> {
  private final PostgreSqlShim shim;
  private final Log log;
  private final long until;
  private final String started;
  private final boolean isExact;
  private @Nullable Lineage found;

  /**
   * Puts the question off.
   *
   * @param until the position of the log with which the commit is flushed
   * @param started when the process started that committed it
   * @param isExact whether there was a write
   */
  Unflushed(PostgreSqlShim shim, Log log, long until, String started, boolean isExact) {
    this.shim = shim;
    this.log = log;
    this.until = until;
    this.started = started;
    this.isExact = isExact;
  }

  @Override
  public synchronized Lineage get() {
    if (found == null) {
      found = ask();
    }
    return found;
  }

  private Lineage ask() {
    String datastore = shim.datastore();
    try {
      long flushed = shim.flushed(started, until);
      if (Lsn.isAtLeast(flushed, until)) {
        return Lineage.empty().append(shim.write(log, flushed, isExact));
      }
    } catch (UnreachableException | RefusedException | NoLsnException unknown) {
      // Said below.
    }
    Counts.count("incomplete", datastore);
    Counts.logOnce(
        "postgresql_unflushed",
        datastore,
        "",
        () ->
            "a write to "
                + datastore
                + " was committed without waiting for its flush, and is not flushed yet: its"
                + " lineage is incomplete (in_doubt)");
    return Lineage.empty().marked(new Incomplete(datastore, "in_doubt"));
  }
}
