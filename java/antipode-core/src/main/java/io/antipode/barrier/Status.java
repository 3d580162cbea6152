package io.antipode.barrier;

import java.util.Locale;

/** The outcome of one dependency. */
public enum Status {
  /** It can be read here, or a later position of its log can. */
  VISIBLE,
  /** A later version of the same key can be read here. */
  SUPERSEDED,
  /** It is on its way. */
  NOT_YET,
  /** It is proved gone: its history ended without it. */
  LOST,
  /** This replica cannot relate its history to that log. */
  UNKNOWN_LOG,
  /** An unknown log older than the horizon, or a promise whose record would be gone by now. */
  AGED,
  /** The last poll failed in a way that another may not. */
  UNREACHABLE,
  /** Nothing is registered here that can wait for that datastore. */
  UNKNOWN_STORE,
  /** A message store without receipts. */
  NOT_WAITABLE,
  /** A promise that was given up, or that expired unfulfilled. */
  ABANDONED,
  /** Older than what the store remembers, or the check failed for good. */
  UNDECIDABLE,
  /** A floor waits for the read. */
  DEFERRED,
  /** Left out on purpose. */
  EXCLUDED;

  /** Returns whether a barrier may succeed with it under the default policies. */
  public boolean isMet() {
    return switch (this) {
      case VISIBLE, SUPERSEDED, AGED, NOT_WAITABLE, DEFERRED, EXCLUDED -> true;
      default -> false;
    };
  }

  /** Returns whether waiting longer may change it. */
  public boolean isPending() {
    return this == NOT_YET || this == UNREACHABLE;
  }

  /** Returns whether {@code onUnknown} decides about it. */
  boolean isUnknown() {
    return this == UNKNOWN_STORE || this == UNKNOWN_LOG || this == UNDECIDABLE;
  }

  /** Returns the word of the specification. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
