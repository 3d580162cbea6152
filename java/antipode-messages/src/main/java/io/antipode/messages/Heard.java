package io.antipode.messages;

import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What receipts learn from messages. Without I/O. */
public final class Heard {
  private Heard() {}

  /** Notes a message that a tap of a datastore was shown, by its headers. */
  public static void routed(
      Ledger ledger, @Nullable Map<String, Object> headers, String datastore) {
    try {
      fulfilled(ledger, headers, datastore);
    } catch (IllegalArgumentException error) {
      unreadable(datastore, "which promise it fulfils", error);
    }
    try {
      WriteId write = MessageHeaders.ownWrite(headers);
      if (write != null && write.datastore().equals(datastore)) {
        ledger.see(write);
      }
    } catch (IllegalArgumentException error) {
      unreadable(datastore, "its name", error);
    }
  }

  /** Notes a message that this process received. */
  public static void received(
      Ledger ledger,
      @Nullable Map<String, Object> headers,
      MessageHeaders.Received message,
      String datastore) {
    try {
      fulfilled(ledger, headers, datastore);
    } catch (IllegalArgumentException unreadable) {
      // Counted where the tap sees it.
    }
    WriteId write = message.write();
    if (write != null && write.datastore().equals(datastore)) {
      ledger.deliver(write, message.after());
    }
  }

  private static void fulfilled(
      Ledger ledger, @Nullable Map<String, Object> headers, String datastore) {
    Promise promise = MessageHeaders.ownPromise(headers);
    if (promise != null && promise.datastore().equals(datastore)) {
      ledger.fulfil(promise);
    }
  }

  private static void unreadable(String datastore, String what, IllegalArgumentException error) {
    Counts.count("unreadable", datastore);
    Counts.logOnce(
        "unreadable",
        datastore,
        what,
        () -> "a publication in '" + datastore + "' says " + what + " unreadably: " + error);
  }
}
