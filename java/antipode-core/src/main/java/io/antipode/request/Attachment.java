package io.antipode.request;

import io.antipode.lineage.Dependency;
import java.util.Set;

/**
 * What another part of the library keeps with a request until it is stopped, as floors. A value
 * that does not change.
 *
 * @param <A> its own type
 */
public interface Attachment<A extends Attachment<A>> {
  /** Returns this with what a branch, or a later call, attaches under the same key. */
  A joined(A later);

  /** Returns this for a branch that fulfils the promises of these ids itself. */
  A branched(Set<String> own);

  /** Returns what reads have to see because of it, whatever the lineage is. */
  default Set<Dependency> demanded() {
    return Set.of();
  }

  /** Returns whether work that is done for several requests has it of each. */
  default boolean isForSharedWork() {
    return true;
  }

  /**
   * Under which something is attached; compared by identity.
   *
   * @param <A> what is attached
   */
  final class Key<A extends Attachment<A>> {
    private final Class<A> type;

    /** Makes a key for attachments of a type. */
    public Key(Class<A> type) {
      this.type = type;
    }

    Class<A> type() {
      return type;
    }
  }
}
