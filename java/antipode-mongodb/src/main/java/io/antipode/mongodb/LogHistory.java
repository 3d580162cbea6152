package io.antipode.mongodb;

import io.antipode.lineage.WriteId;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Where the logs of earlier terms ended: facts about a replica set, which hold for every member and
 * for ever. Thread-safe.
 */
final class LogHistory {
  private static final int MOST_TERMS = 256;

  private final Map<Key, Term> terms = new HashMap<>();

  /** What became of a position of an earlier term. */
  enum Fate {
    SURVIVED,
    LOST,
    UNKNOWN
  }

  /** The oplog of the server that is polled. */
  interface Oplog {
    /**
     * Returns its first entry at or after a version; null where there is none, or none is shown.
     */
    @Nullable OpTime firstFrom(long version);
  }

  private record Key(String setName, long initiatedS, long term) {}

  /** A term's log is one primary's: what holds for an entry holds for those before or after. */
  private static final class Term {
    private @Nullable Long survivedTo;
    private @Nullable Long lostFrom;
    private final Set<Long> unknown = new HashSet<>();
  }

  /** Returns what became of a write of a term that is over; null where it is not settled yet. */
  @Nullable Fate of(ServerState state, long term, WriteId write, Oplog oplog) {
    Key key = new Key(state.setName(), state.initiatedS(), term);
    Fate known = known(key, write);
    if (known != null) {
      return known;
    }
    long version = write.version();
    // The first entry at or after the version decides: where it is of the same term, the write is
    // in this log, as is all that its primary wrote before. Else it is not, and a log that has a
    // committed entry of a later term never has it.
    OpTime first = oplog.firstFrom(version);
    if (first != null && first.term() == term) {
      if (Long.compareUnsigned(version, state.committed().version()) > 0) {
        return null;
      }
      learn(key, version, Fate.SURVIVED);
    } else if (state.committed().term() > term) {
      OpTime oldest = oplog.firstFrom(0);
      boolean reachesBack = oldest != null && Long.compareUnsigned(oldest.version(), version) <= 0;
      learn(key, version, reachesBack && !write.isCovering() ? Fate.LOST : Fate.UNKNOWN);
    }
    return known(key, write);
  }

  private synchronized @Nullable Fate known(Key key, WriteId write) {
    Term term = terms.get(key);
    if (term == null) {
      return null;
    }
    long version = write.version();
    if (term.survivedTo != null && Long.compareUnsigned(version, term.survivedTo) <= 0) {
      return Fate.SURVIVED;
    }
    if (term.unknown.contains(version)) {
      return Fate.UNKNOWN;
    }
    if (term.lostFrom == null || Long.compareUnsigned(version, term.lostFrom) < 0) {
      return null;
    }
    // What a read covered may be less than its position: only that of a write is an entry.
    return write.isCovering() ? Fate.UNKNOWN : Fate.LOST;
  }

  private synchronized void learn(Key key, long version, Fate fate) {
    if (terms.size() >= MOST_TERMS) {
      terms.clear();
    }
    Term term = terms.computeIfAbsent(key, absent -> new Term());
    switch (fate) {
      case SURVIVED -> {
        boolean isLater =
            term.survivedTo == null || Long.compareUnsigned(version, term.survivedTo) > 0;
        term.survivedTo = isLater ? Long.valueOf(version) : term.survivedTo;
      }
      case LOST -> {
        boolean isEarlier =
            term.lostFrom == null || Long.compareUnsigned(version, term.lostFrom) < 0;
        term.lostFrom = isEarlier ? Long.valueOf(version) : term.lostFrom;
      }
      case UNKNOWN -> {
        if (term.unknown.size() >= MOST_TERMS) {
          term.unknown.clear();
        }
        term.unknown.add(version);
      }
    }
  }
}
