package io.antipode.redis;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Where one server stands, as {@code INFO replication} says.
 *
 * @param isPrimary whether it takes writes; a replica otherwise
 * @param log the history it is on
 * @param offset bytes of that history that it has applied
 * @param formerLog the history it was on before; empty where it knows none
 * @param formerEnd the first offset of that which it does not share
 * @param isLinkUp of a replica, whether it is connected to its primary
 * @param isSyncing of a replica, whether its whole data is being replaced
 * @param isReadOnly of a replica, whether it refuses writes
 * @param isNumbering whether offsets advance: not on a primary that never had a replica
 */
record ServerState(
    boolean isPrimary,
    String log,
    long offset,
    String formerLog,
    long formerEnd,
    boolean isLinkUp,
    boolean isSyncing,
    boolean isReadOnly,
    boolean isNumbering) {
  private static final String NO_LOG = "0".repeat(40);

  /** Returns what an answer says; null where it lacks what a position needs. */
  static @Nullable ServerState parse(String info) {
    Map<String, String> fields = new HashMap<>();
    info.lines()
        .forEach(
            line -> {
              int colon = line.indexOf(':');
              if (colon > 0) {
                fields.put(line.substring(0, colon), line.substring(colon + 1).strip());
              }
            });
    String role = fields.get("role");
    String log = fields.get("master_replid");
    boolean isPrimary = "master".equals(role);
    Long offset = number(fields.get(isPrimary ? "master_repl_offset" : "slave_repl_offset"));
    Long formerEnd = number(fields.getOrDefault("second_repl_offset", "-1"));
    if (role == null || log == null || offset == null || formerEnd == null) {
      return null;
    }
    String formerLog = fields.getOrDefault("master_replid2", NO_LOG);
    return new ServerState(
        isPrimary,
        log,
        offset,
        formerLog.equals(NO_LOG) ? "" : formerLog,
        formerEnd,
        isPrimary || "up".equals(fields.get("master_link_status")),
        !fields.getOrDefault("master_sync_in_progress", "0").equals("0"),
        !fields.getOrDefault("slave_read_only", "0").equals("0"),
        !fields.getOrDefault("repl_backlog_active", "1").equals("0"));
  }

  private static @Nullable Long number(@Nullable String text) {
    try {
      return text == null ? null : Long.valueOf(text);
    } catch (NumberFormatException noNumber) {
      return null;
    }
  }

  /** Returns whether the data of this replica is being replaced. */
  boolean isBeingReplaced() {
    return !isPrimary && isSyncing;
  }

  /** Returns whether an unknown log is unknown for good: not while a replica is cut off. */
  boolean isRelated() {
    return isPrimary || (isLinkUp && !isSyncing);
  }
}
