package io.antipode.barrier;

import io.antipode.Mode;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;

/** Automatic barriers: each read waits for what its request depends on, where it reads. */
final class Automatic {
  private static final ContextKey<ReadBarriers> BLOCK = ContextKey.named("antipode-barriers");

  private Automatic() {}

  /** Returns a context in which reads wait automatically, or do not, whatever is configured. */
  static Context storeIn(Context context, ReadBarriers which) {
    return context.with(BLOCK, which);
  }

  /** Returns whether reads of a client wait automatically, here and now. */
  static boolean applies(Shim client) {
    return Settings.current().mode() == Mode.ENFORCE && isChosen(client);
  }

  /** Returns whether they are to wait automatically here, whatever the mode. */
  static boolean isChosen(Shim client) {
    ReadBarriers which = Context.current().get(BLOCK);
    if (which == null) {
      which = client.barriers();
    }
    if (which == null) {
      which = Settings.current().barriers();
    }
    return which == ReadBarriers.AUTO;
  }
}
