package io.antipode.mysql;

import java.util.List;
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
}
