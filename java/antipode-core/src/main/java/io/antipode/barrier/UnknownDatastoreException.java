package io.antipode.barrier;

/** The lineage names a datastore for which nothing is registered that can wait. */
public final class UnknownDatastoreException extends UnmetException {
  private static final long serialVersionUID = 1L;

  UnknownDatastoreException(String message, BarrierResult result) {
    super("unknown_datastore", message, result);
  }
}
