package io.antipode.lineage;

/** What a lineage makes a reader wait for: a write, or the promise of one. */
public sealed interface Dependency permits WriteId, Promise {
  /** Returns the name of the datastore. */
  String datastore();
}
