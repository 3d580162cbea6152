package io.antipode.messages;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.UnreachableException;
import java.time.Duration;

/** A datastore of which this process publishes or consumes, without receipts. */
public final class UnwaitableShim extends Shim {
  /** Makes a datastore of a name. */
  public UnwaitableShim(String datastore) {
    super(datastore, ReadsFrom.PRIMARY);
  }

  /** Registers a datastore where this process has no shim of it: barriers report it then. */
  public static void registerUnlessKnown(String datastore) {
    if (Shims.of(datastore).isEmpty()) {
      Shims.register(new UnwaitableShim(datastore));
    }
  }

  @Override
  public boolean isWaitable() {
    return false;
  }

  @Override
  public boolean canPoll() {
    return false;
  }

  /** Is never called: it does not poll. */
  @Override
  public Endpoint openEndpoint(Duration timeout) {
    throw new UnreachableException("'" + datastore() + "' has no receipts");
  }
}
