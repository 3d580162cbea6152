package io.antipode.mongodb;

import com.mongodb.MongoException;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.StaleRead;
import io.antipode.lineage.WriteId;
import io.antipode.mongodb.Commands.Kind;
import io.antipode.request.Recording;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.bson.BsonDocument;
import org.jspecify.annotations.Nullable;

/**
 * What one call of the application came to, over all commands and attempts of the driver; at its
 * end that enters the scope.
 */
final class Call {
  /** The call that runs in a thread; the driver's own code lies between its two ends. */
  private static final ThreadLocal<@Nullable Call> CURRENT = new ThreadLocal<>();

  private final Instrumented client;
  private final Map<String, WriteId> writes = new LinkedHashMap<>();
  private @Nullable Sent sent;

  /** Whether a write was sent that was not answered yet. */
  private boolean isOpen;

  /** Whether nobody knows what became of a write that has no attempts but itself. */
  private boolean isInDoubt;

  /** Operations in doubt: one that is answered in the end is in none. */
  private final Set<Sent.Operation> doubted = new HashSet<>();

  /** Whether the read was asked for already. */
  private boolean isTold;

  /** Counts its read once it is answered, if it may be stale. */
  private final StaleRead stale = new StaleRead();

  private @Nullable RuntimeException refusal;
  private @Nullable Floor asked;

  /** Its read, where it waits without a connection; null where it does not wait. */
  private @Nullable HeldRead held;

  /** Until its read is tried again; null where it was sent, or refused. */
  private @Nullable Duration pause;

  Call(Instrumented client) {
    this.client = client;
  }

  /** Returns the call of a client that runs in this thread; null for none. */
  static @Nullable Call of(Instrumented client) {
    Call call = CURRENT.get();
    return call != null && call.client == client ? call : null;
  }

  /** Begins in this thread; returns the call that it interrupts, if any. */
  @Nullable Call enter() {
    Call outer = CURRENT.get();
    CURRENT.set(this);
    return outer;
  }

  /** Goes on with the call that was interrupted. */
  static void leave(@Nullable Call outer) {
    if (outer == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(outer);
    }
  }

  /** Returns what counts its read once it is answered, if it may be stale. */
  StaleRead stale() {
    return stale;
  }

  /** Takes what its read must see; null for nothing. */
  void ask(@Nullable Floor floor) {
    asked = floor;
  }

  /** Returns what its read must see, which was not sent yet and is tried again; null for none. */
  @Nullable Floor retried() {
    return held == null ? null : asked;
  }

  /** Returns its read, which waits without a connection. */
  HeldRead held(Floor floor, MongoShim shim) {
    HeldRead read = held == null ? floor.hold(shim) : held;
    held = read;
    return read;
  }

  /** Says that its read is to be tried again after a pause: it was not sent. */
  void retry(Duration after) {
    pause = after;
  }

  boolean isRetried() {
    return pause != null;
  }

  /** Pauses this thread until its read is tried again. */
  void pause() {
    Duration left = Objects.requireNonNull(pause);
    pause = null;
    try {
      Objects.requireNonNull(held).pause(left);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw MongoShim.interrupted(client.datastore(), error);
    }
  }

  /** Its read is over. */
  void end() {
    if (held != null) {
      held.close();
    }
  }

  /**
   * Says that its read is sent, under this floor: what no poll can show it is counted, once for all
   * attempts.
   */
  void answer(Floor floor) {
    floor.pass();
    if (asked != null && !floor.isCounted()) {
      asked.pass();
    }
  }

  /** Returns whether the first command of a read is about to be sent. */
  boolean tell() {
    boolean isFirst = !isTold;
    isTold = true;
    return isFirst;
  }

  /** Says why a command is not sent. */
  void refuse(RuntimeException why) {
    refusal = why;
  }

  @Nullable RuntimeException refusal() {
    return refusal;
  }

  void sent(Sent sent) {
    this.sent = sent;
    isOpen = sent.isWrite();
  }

  @Nullable Sent sent() {
    return sent;
  }

  /** Takes a reply in that is no error; it may have errors of single documents. */
  void answered(Sent answered, BsonDocument reply) {
    if (!answered.isWrite() || answered.isUnacknowledged()) {
      return;
    }
    isOpen = false;
    settled(answered);
    boolean isUntouched =
        Long.valueOf(0).equals(Bson.integerAt(reply, "n"))
            && (answered.name().equals("insert") || !reply.containsKey("writeErrors"));
    if (!isUntouched) {
      wrote(answered, reply, answered.isMajority() && !reply.containsKey("writeConcernError"));
    }
    if (Bson.docsAt(reply, "writeErrors").stream().map(Errors::code).anyMatch(Errors::isDoubtful)) {
      doubt(answered);
    }
  }

  /** Takes an error in that the server replied. */
  void refused(Sent refused, MongoException error, BsonDocument reply) {
    if (!refused.isWrite()) {
      return;
    }
    isOpen = false;
    if (refused.commits() != null) {
      // With this label the server vouches for it that nothing was committed.
      if (error.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL)) {
        settled(refused);
      } else {
        doubt(refused);
      }
    } else if (isMaybeHalfDone(refused, error.getCode())) {
      wrote(refused, reply, false);
    } else if (Errors.isDoubtful(error.getCode())) {
      doubt(refused);
    }
  }

  /** Returns whether what failed may have written before that. */
  private static boolean isMaybeHalfDone(Sent refused, int code) {
    return refused.means() == Kind.UNKNOWN
        ? !Errors.isRefused(code)
        : refused.name().equals("aggregate") || refused.name().equals("mapReduce");
  }

  /** Takes note that no answer came. */
  void lost(Sent lost) {
    if (lost.isWrite()) {
      isOpen = false;
      doubt(lost);
    }
  }

  /** Nobody knows what became of this attempt. */
  private void doubt(Sent attempt) {
    if (attempt.operation() == null) {
      isInDoubt = true;
    } else {
      doubted.add(attempt.operation());
    }
  }

  /** An answer ends the doubt about earlier attempts of the same operation, and of no other. */
  private void settled(Sent attempt) {
    if (attempt.operation() != null) {
      doubted.remove(attempt.operation());
    }
  }

  private void wrote(Sent answered, BsonDocument reply, boolean isMajority) {
    WriteId write = client.named(answered, reply, isMajority);
    if (write != null) {
      writes.put(write.key(), write); // One log's later position says all of the earlier.
    }
  }

  /**
   * Enters what was written into the scope.
   *
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  void settle() {
    if (isInDoubt || isOpen || !doubted.isEmpty()) { // Open in the end: nobody waited for a reply.
      Recording.markIncomplete(client.datastore(), "in_doubt");
    }
    List.copyOf(writes.values()).forEach(Recording::recordWrite);
    stale.answered();
  }

  /** The same after an exception, which goes on to the application. */
  void settleFailed() {
    stale.failed();
    try {
      settle();
    } catch (ConfigurationException unscoped) { // It is counted and logged.
      return;
    }
  }
}
