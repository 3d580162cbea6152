package io.antipode.dynamodb;

import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.StaleRead;
import io.antipode.dynamodb.Commands.Kind;
import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.interceptor.ExecutionAttribute;

/** One call of an instrumented client, whatever thread its reply comes in. */
final class Call {
  static final ExecutionAttribute<Call> KEY = new ExecutionAttribute<>("antipode.dynamodb.call");

  /**
   * One item that it writes.
   *
   * @param item null where its key is not known
   * @param stamp what the write gets
   */
  record Planned(@Nullable Item item, long stamp) {}

  private final DynamoDbShim shim;
  private final String operation;
  private final Kind kind;
  private final Context context = Context.current();
  private final @Nullable StackTraceElement site;
  private final StaleRead stale = new StaleRead();
  private final Attempts attempts;
  private final List<Planned> planned = new ArrayList<>();
  private final AtomicBoolean isSettled = new AtomicBoolean();
  private final AtomicBoolean isMarked = new AtomicBoolean();

  /** What a read must see that its region was not just seen to show; null for nothing. */
  private @Nullable Floor floor;

  /** Whether a read is to show what its region has now. */
  private boolean isConsistent;

  /** Why what it wrote, if anything, is not known; null where it is. */
  private @Nullable String uncovered;

  private volatile @Nullable HeldRead held;
  private volatile boolean isGivenUp;

  Call(DynamoDbShim shim, String operation, Kind kind) {
    this.shim = shim;
    this.operation = operation;
    this.kind = kind;
    this.site = kind.mayWrite() ? Recording.callSite() : null;
    this.attempts =
        new Attempts(
            operation.equals("TransactWriteItems") || operation.equals("ExecuteTransaction"));
  }

  String operation() {
    return operation;
  }

  Kind kind() {
    return kind;
  }

  StaleRead stale() {
    return stale;
  }

  Attempts attempts() {
    return attempts;
  }

  List<Planned> planned() {
    return planned;
  }

  /** Returns whether it waits before it is sent. */
  boolean isHeld() {
    return floor != null;
  }

  void hold(@Nullable Floor waitsFor) {
    floor = waitsFor;
    isConsistent = true;
  }

  boolean isConsistent() {
    return isConsistent;
  }

  /** Notes why what it writes is not known. */
  void uncover(String why) {
    uncovered = why;
  }

  @Nullable String uncovered() {
    return uncovered;
  }

  /** Returns a stamp for one of its writes: later than whatever its request has seen. */
  long stamp(boolean isDeletion) {
    Scope scope = Scope.fromContextOrNull(context);
    return shim.stamp(scope == null ? Lineage.empty() : scope.known(), isDeletion);
  }

  /** Waits until its region shows the floor. */
  void await() throws Exception {
    Floor waitsFor = floor;
    floor = null;
    if (waitsFor == null || waitsFor.isOver()) {
      return;
    }
    try (HeldRead read = waitsFor.hold(shim)) {
      held = read;
      for (var pause = read.take(shim.observe(waitsFor));
          pause != null && !isGivenUp;
          pause = read.take(shim.observe(waitsFor))) {
        read.pause(pause);
      }
    } finally {
      held = null;
    }
  }

  /** Does something as a part of the request that made the call. */
  void within(Runnable action) {
    context.wrap(() -> CallSite.handle(site, action)).run();
  }

  // How it ends.

  /** Returns whether nobody has said yet how it ended. */
  boolean settle() {
    return isSettled.compareAndSet(false, true);
  }

  /** Takes in that it ended without a reply, or with a refusal. */
  void failed(Throwable error) {
    stale.failed();
    if (settle() && kind.mayWrite() && attempts.leaveDoubt(error)) {
      doubt();
    }
  }

  /** Takes in that nobody waits for it any more; its reply may still come. */
  void cancelled() {
    isGivenUp = true;
    HeldRead read = held;
    if (read != null) {
      read.giveUp();
    }
    if (attempts.cancel() && !isSettled.get()) {
      sentCancelled();
    }
  }

  /** Takes in that it is sent, or was, while nobody waits for it. */
  void sentCancelled() {
    if (kind.mayWrite()) {
      doubt();
    }
  }

  private void doubt() {
    if (isMarked.compareAndSet(false, true)) {
      within(() -> Recording.markIncomplete(shim.datastore(), "in_doubt"));
    }
  }
}
