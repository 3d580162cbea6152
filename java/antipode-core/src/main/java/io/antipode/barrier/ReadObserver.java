package io.antipode.barrier;

import io.antipode.lineage.WriteId;
import io.antipode.request.Observer;
import io.antipode.request.Scope;

/** An observer that judges reads, too. For the library's own modules; no part of its interface. */
public interface ReadObserver extends Observer {
  /**
   * A client is about to send a read.
   *
   * @param isAutomatic whether it can hold it back, and would
   * @param isOwn whether the read is over when this thread goes on
   */
  void reads(Scope scope, Shim client, boolean isAutomatic, boolean isOwn);

  /** A read by a client showed a write, by its own token. */
  void showed(Scope scope, Shim client, WriteId write);
}
