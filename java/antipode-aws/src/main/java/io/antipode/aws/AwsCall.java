package io.antipode.aws;

import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.StaleRead;
import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.opentelemetry.context.Context;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;

/**
 * One call of an instrumented client, whatever thread its reply comes in. What it means for a store
 * is its subclass's to say.
 */
public abstract class AwsCall {
  private final AwsShim shim;
  private final String operation;
  private final Kind kind;
  private final Context context;
  private final @Nullable StackTraceElement site;
  private final StaleRead stale = new StaleRead();
  private final Attempts attempts;
  private final AtomicBoolean isTaken = new AtomicBoolean();
  private final AtomicBoolean isSettled = new AtomicBoolean();
  private final AtomicBoolean isMarked = new AtomicBoolean();

  /** What a read must see that its region was not just seen to show; null for nothing. */
  private @Nullable Floor floor;

  private boolean isUnderFloor;

  /** Why what it wrote, if anything, is not known; null where it is. */
  private @Nullable String uncovered;

  private volatile @Nullable HeldRead held;
  private volatile boolean isGivenUp;

  /** Begins a call, in the thread that makes it. */
  protected AwsCall(AwsShim shim, String operation, Kind kind) {
    this(shim, operation, kind, null, false);
  }

  /**
   * Begins a call.
   *
   * @param whole the application's, which the SDK makes of several; null where it is that itself
   * @param isTransaction whether one that may be under way is refused as if it had failed
   */
  protected AwsCall(
      AwsShim shim, String operation, Kind kind, @Nullable AwsCall whole, boolean isTransaction) {
    this.shim = shim;
    this.operation = operation;
    this.kind = kind;
    this.context = whole == null ? Context.current() : whole.context;
    this.site = !kind.mayWrite() ? null : whole == null ? Recording.callSite() : whole.site;
    this.attempts = whole != null && kind.mayWrite() ? whole.attempts : new Attempts(isTransaction);
  }

  // What a subclass says.

  /** Returns whether a floor holds it back. */
  protected boolean reads(SdkRequest request) {
    return kind == Kind.READ;
  }

  /** Returns why a read cannot show what its region has now; null where it can. */
  protected @Nullable String refusal(SdkRequest request) {
    return null;
  }

  /** Returns whether something must be asked for before it is planned. */
  protected boolean asks(SdkRequest request) {
    return false;
  }

  /** Asks for it; what is not known marks the lineage. */
  protected void ask(SdkRequest request) {}

  /** Returns the request as it is sent. */
  protected abstract SdkRequest plan(SdkRequest request);

  /** Takes in what it did, by its reply. */
  protected abstract void record(SdkResponse response);

  /** Returns a reply as the application is shown it. */
  protected SdkResponse shown(SdkResponse response) {
    return response;
  }

  /** Returns an error as the application is shown it. */
  protected Throwable shown(Throwable error) {
    return error;
  }

  /** Returns whether an error says what is there, such as nothing. */
  protected boolean isAnswer(Throwable error) {
    return false;
  }

  // What it is.

  /** Returns the operation's name, as the API has it. */
  public final String operation() {
    return operation;
  }

  /** Returns what it means. */
  public final Kind kind() {
    return kind;
  }

  /** Returns what counts it once it is answered, if it may be stale. */
  public final StaleRead stale() {
    return stale;
  }

  final Attempts attempts() {
    return attempts;
  }

  /** Returns whether it is the call that the SDK makes now, and no part of that. */
  final boolean takes(String made) {
    return operation.equals(made) && isTaken.compareAndSet(false, true);
  }

  /** Returns whether it waits before it is sent. */
  final boolean isHeld() {
    return floor != null;
  }

  final void hold(@Nullable Floor waitsFor) {
    floor = waitsFor;
    isUnderFloor = true;
  }

  /** Returns whether it is a read that is to show what its region has now. */
  protected final boolean isUnderFloor() {
    return isUnderFloor;
  }

  /** Notes why what it writes is not known. */
  public final void uncover(String why) {
    uncovered = why;
  }

  /** Returns what the request has seen that it is of. */
  protected final Lineage known() {
    Scope scope = Scope.fromContextOrNull(context);
    return scope == null ? Lineage.empty() : scope.known();
  }

  /** Waits until its region shows the floor. */
  final void await() throws Exception {
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
  protected final void within(Runnable action) {
    context.wrap(() -> CallSite.handle(site, action)).run();
  }

  // How it ends.

  /** Takes in its reply, once. */
  final void answered(SdkResponse response) {
    if (!isSettled.compareAndSet(false, true)) {
      return;
    }
    stale.answered();
    within(
        () -> {
          if (uncovered == null) {
            record(response);
          } else {
            shim.uncovered(operation + " " + uncovered);
          }
        });
  }

  /** Takes in that it ended without a reply, or with a refusal. */
  final void failed(Throwable error) {
    if (isAnswer(error)) {
      stale.answered();
    } else {
      stale.failed();
    }
    if (isSettled.compareAndSet(false, true) && kind.mayWrite() && attempts.leaveDoubt(error)) {
      doubt();
    }
  }

  /** Takes in that nobody waits for it any more; its reply may still come. */
  final void cancelled() {
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
  final void sentCancelled() {
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
