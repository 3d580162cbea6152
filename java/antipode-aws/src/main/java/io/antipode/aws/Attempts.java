package io.antipode.aws;

import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttribute;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;

/** How often one request was sent, and what is known of each attempt. Thread-safe. */
public final class Attempts {
  private static final ExecutionAttribute<Attempts> KEY =
      new ExecutionAttribute<>("antipode.aws.attempts");

  private final boolean isTransaction;
  private int doubtful;
  private boolean isLastDoubtful;
  private boolean isCancelled;

  /** Begins to count; a transaction that may be under way is refused as if it had failed. */
  public Attempts(boolean isTransaction) {
    this.isTransaction = isTransaction;
  }

  /** Lets a call count its attempts here. */
  void follow(ExecutionAttributes attributes) {
    ExecutionAttributes unused = attributes.putAttribute(KEY, this);
  }

  /** Returns the attribute by which a request has its attempts counted. */
  public static ExecutionAttribute<Attempts> key() {
    return KEY;
  }

  private synchronized boolean send() {
    doubtful++;
    isLastDoubtful = true;
    return isCancelled;
  }

  private synchronized void answer(int status) {
    if (isLastDoubtful && Errors.isUndone(status, isTransaction)) {
      doubtful--;
      isLastDoubtful = false;
    }
  }

  /** Returns whether a call that ended by an error may have written. */
  public synchronized boolean leaveDoubt(Throwable error) {
    boolean isUndone = isLastDoubtful && Errors.isUndone(error);
    return doubtful > (isUndone ? 1 : 0);
  }

  /**
   * Returns whether a call that nobody waits for any more may have written. One that is sent
   * nevertheless is reported later.
   */
  synchronized boolean cancel() {
    isCancelled = true;
    return doubtful > 0;
  }

  /** Counts the attempts of a client's calls. */
  public static class Counting implements ExecutionInterceptor {
    @Override
    public void beforeTransmission(
        Context.BeforeTransmission context, ExecutionAttributes attributes) {
      @Nullable Attempts attempts = attributes.getAttribute(KEY);
      if (attempts != null && attempts.send()) {
        sentCancelled(attributes);
      }
    }

    /** Notes that a request is sent whose call was cancelled before. */
    void sentCancelled(ExecutionAttributes attributes) {}

    @Override
    public void afterTransmission(
        Context.AfterTransmission context, ExecutionAttributes attributes) {
      @Nullable Attempts attempts = attributes.getAttribute(KEY);
      if (attempts != null) {
        attempts.answer(context.httpResponse().statusCode());
      }
    }
  }
}
