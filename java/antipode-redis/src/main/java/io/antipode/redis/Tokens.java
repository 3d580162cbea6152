package io.antipode.redis;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Time;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What a server's state, asked for on the same connection, makes of a write or a read. */
final class Tokens {
  private Tokens() {}

  static WriteId position(String datastore, ServerState state) {
    return WriteId.of(datastore, state.log(), state.offset()).writtenAt(Time.hour());
  }

  /**
   * Returns what a write enters.
   *
   * @param after the state after it; null where it could not be had
   */
  static Lineage ofWrite(String datastore, @Nullable ServerState after) {
    if (after == null) {
      return marked(datastore, "unsampled");
    }
    // Demoted between write and answer, or a writable replica: in nobody's log.
    return after.isPrimary()
        ? Lineage.of(position(datastore, after))
        : marked(datastore, "in_doubt");
  }

  /** Returns what may have been a write enters: nothing where the server takes none. */
  static Lineage ofUnknown(
      String datastore, @Nullable ServerState before, @Nullable ServerState after) {
    boolean wasRefused =
        before != null && after != null && before.isReadOnly() && after.isReadOnly();
    return wasRefused ? Lineage.empty() : ofWrite(datastore, after);
  }

  /** Returns what covers a read. */
  static Lineage ofRead(String datastore, @Nullable ServerState after) {
    return after == null || after.isBeingReplaced()
        ? marked(datastore, "unsampled")
        : Lineage.of(position(datastore, after).asCovering());
  }

  private static Lineage marked(String datastore, String reason) {
    return Lineage.empty().marked(new Incomplete(datastore, reason));
  }

  /** Returns the log that ended when this server was promoted, and where; empty for none. */
  static Map<String, Long> notes(ServerState state) {
    return state.isPrimary() && !state.formerLog().isEmpty() && state.formerEnd() > 0
        ? Map.of(state.formerLog(), state.formerEnd() - 1)
        : Map.of();
  }
}
