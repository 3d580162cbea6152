package io.antipode.aws;

import io.antipode.lineage.WriteId;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the regions of writes that are waited for have said. Thread-safe.
 *
 * @param <S> what a region says of a write
 */
public final class Homes<S> {
  /**
   * After how many polls that missed a write its own region is asked about it; then after twice as
   * many, and so on: it may have been overwritten since.
   */
  private static final int FIRST_ASKED = 8;

  private static final int MOST_REMEMBERED = 10_000;

  /** A write that polls have missed. */
  private static final class Missed<S> {
    private int polls;
    private int due = FIRST_ASKED;
    private @Nullable S home;
    private String cause = "";
    private boolean isSeen;
  }

  private final Map<WriteId, Missed<S>> missed =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<WriteId, Missed<S>> eldest) {
          return size() > MOST_REMEMBERED;
        }
      };

  /** Returns what the region of a write has of it, as far as it was asked. */
  public synchronized @Nullable S said(WriteId write) {
    Missed<S> held = missed.get(write);
    return held == null ? null : held.home;
  }

  /** Returns why that is not known, where it was asked for. */
  public synchronized String cause(WriteId write) {
    Missed<S> held = missed.get(write);
    return held == null ? "" : held.cause;
  }

  /** Notes that a poll found what a write deletes. */
  public synchronized void see(WriteId write) {
    missed.computeIfAbsent(write, absent -> new Missed<>()).isSeen = true;
  }

  /** Returns whether a poll found what a write deletes. */
  public synchronized boolean hasSeen(WriteId write) {
    Missed<S> held = missed.get(write);
    return held != null && held.isSeen;
  }

  /**
   * Notes that a poll missed a write; returns whether its region is to be asked now.
   *
   * @param isDoubtful whether the first poll that misses it is reason enough
   */
  public synchronized boolean miss(WriteId write, boolean isDoubtful) {
    Missed<S> held = missed.computeIfAbsent(write, absent -> new Missed<>());
    held.polls++;
    boolean asks = held.polls >= held.due || (isDoubtful && held.polls == 1);
    if (asks) {
      held.due = Math.max(2 * held.polls, FIRST_ASKED);
    }
    return asks;
  }

  /** Takes what the region of a write said; null, and why, for nothing. */
  public synchronized void learn(WriteId write, @Nullable S home, String cause) {
    Missed<S> held = missed.get(write);
    if (held != null) {
      held.home = home;
      held.cause = cause;
    }
  }

  /** Forgets a write that is not waited for any more. */
  public synchronized void forget(WriteId write) {
    Missed<S> unused = missed.remove(write);
  }
}
