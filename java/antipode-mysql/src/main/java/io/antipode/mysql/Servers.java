package io.antipode.mysql;

import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A server and those above it, as they answer. */
interface Servers {
  /**
   * Returns what a server has.
   *
   * @param above the source that is asked; null for the server at hand
   */
  ServerState state(@Nullable Source above) throws RefusedException;

  /** Returns what a server follows. */
  List<Source> sources(@Nullable Source above) throws RefusedException;

  /**
   * Returns the primaries that a server shows all of, following nobody: itself, and its group.
   * MySQL's have their {@code server_uuid}, MariaDB's their {@code server_id}. All of a Galera
   * cluster are the one primary that its cluster and its present view name; a node that was cut off
   * from the cluster is none.
   */
  Set<String> primaries(@Nullable Source above) throws RefusedException;

  /** Returns what lets a user ask what a server follows. */
  String grants();
}
