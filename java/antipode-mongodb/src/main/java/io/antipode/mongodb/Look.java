package io.antipode.mongodb;

import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.WriteId;
import java.util.Collection;
import java.util.OptionalLong;

/** What a server's state proves of writes. */
final class Look {
  private final LogHistory history;
  private final boolean isMajority;

  /** The outcome of one write, and why. */
  private record Judged(Status status, String cause) {}

  /**
   * Begins to judge.
   *
   * @param history what is known of earlier terms; learns
   * @param isMajority whether reads have the concern {@code majority}
   */
  Look(LogHistory history, boolean isMajority) {
    this.history = history;
    this.isMajority = isMajority;
  }

  /** Returns what a server in a state shows; the oplog is asked only after a change of term. */
  Observation.Builder at(ServerState state, Collection<WriteId> writes, LogHistory.Oplog oplog) {
    Observation.Builder shown = Observation.of(state.incarnation());
    for (WriteId write : writes) {
      Judged judged = judge(state, write, oplog);
      shown.write(write, judged.status, judged.cause);
    }
    return shown;
  }

  private Judged judge(ServerState state, WriteId write, LogHistory.Oplog oplog) {
    if (write.opaqueVersion() != null) {
      return new Judged(Status.UNDECIDABLE, "it is no position of a MongoDB log");
    }
    OptionalLong log = Positions.term(write.key(), state.setName());
    if (log.isEmpty()) {
      return new Judged(Status.UNKNOWN_LOG, "the server is a member of '" + state.setName() + "'");
    }
    if (OpTime.seconds(write.version()) < state.initiatedS()) {
      return new Judged(Status.UNKNOWN_LOG, "the replica set was initiated after this position");
    }
    long term = log.getAsLong();
    OpTime shown = state.shown(isMajority);
    if (term == Positions.MAJORITY) {
      return byMajority(state, write);
    }
    if (term == shown.term()) {
      return reached(write, shown.version(), "term " + term);
    }
    if (term > shown.term()) {
      return new Judged(Status.NOT_YET, "the server has applied nothing of term " + term);
    }
    LogHistory.Fate fate = history.of(state, term, write, oplog);
    if (fate == null) {
      return new Judged(Status.NOT_YET, "nothing of a term after " + term + " is committed yet");
    }
    return switch (fate) {
      case SURVIVED -> byMajority(state, write);
      case LOST -> new Judged(Status.LOST, "rolled back: term " + term + " ended before it");
      case UNKNOWN ->
          new Judged(
              Status.UNKNOWN_LOG,
              "the oplog does not show what became of this position of an earlier term");
    };
  }

  private static Judged byMajority(ServerState state, WriteId write) {
    return reached(write, state.committed().version(), "a majority's entries");
  }

  private static Judged reached(WriteId write, long shown, String what) {
    return Long.compareUnsigned(shown, write.version()) >= 0
        ? new Judged(Status.VISIBLE, "")
        : new Judged(
            Status.NOT_YET, "the server shows " + what + " up to second " + OpTime.seconds(shown));
  }
}
