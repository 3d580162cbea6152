package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import java.util.Set;

/** Somebody who waits at a watcher. Called from the watcher's thread. */
interface Subscriber {
  /** Returns what it still waits for; empty when it waits no longer. */
  Set<Dependency> wanted(String datastore);

  /** Learns that an earlier poll, of which it was not told, left it waiting. */
  default void waitedOn(long at) {}

  /** Receives what a poll showed, of its own writes and of others'. */
  void take(String datastore, Observation observation);

  /** Learns that a poll failed and will be repeated. */
  void unreachable(String datastore, String cause);

  /** Learns that there will be no further poll. */
  void failed(String datastore, String cause);
}
