package io.antipode.mongodb;

import java.util.OptionalLong;
import org.bson.BsonDocument;
import org.jspecify.annotations.Nullable;

/**
 * What writes and reads are named by. One term is the log of one primary, and never re-issued; what
 * a majority has is in the log of every later primary, so that it is one log for ever.
 */
final class Positions {
  /** The term of the log of what a majority has. */
  static final long MAJORITY = -1;

  private Positions() {}

  /**
   * A place in a log.
   *
   * @param key of the log: {@code set.term}, or {@code set} for what a majority has
   */
  record Position(String key, long version) {}

  /**
   * What a reply says of positions.
   *
   * @param written {@code opTime}, of a write
   * @param operation {@code operationTime}
   * @param state where the server stood after the command, which asked for it
   */
  record Told(@Nullable OpTime written, @Nullable Long operation, @Nullable ServerState state) {
    static Told of(BsonDocument reply, String setName) {
      return new Told(
          OpTime.at(reply, "opTime"),
          Bson.stampAt(reply, "operationTime"),
          ServerState.ofReply(reply, setName));
    }
  }

  static String key(String setName, long term) {
    return setName + "." + term;
  }

  /**
   * Returns the term of a log of this set, {@link #MAJORITY} for what a majority has; empty where
   * the key names no log of it. The name is that of the server which is asked, so that dots in it
   * are no ambiguity.
   */
  static OptionalLong term(String key, String setName) {
    if (key.equals(setName)) {
      return OptionalLong.of(MAJORITY);
    }
    int dot = key.lastIndexOf('.');
    if (dot < 0 || !key.substring(0, dot).equals(setName)) {
      return OptionalLong.empty();
    }
    String term = key.substring(dot + 1);
    if (!term.matches("[0-9]+")) {
      return OptionalLong.empty();
    }
    try {
      return OptionalLong.of(Long.parseLong(term));
    } catch (NumberFormatException tooLarge) { // No set reaches it.
      return OptionalLong.of(Long.MAX_VALUE);
    }
  }

  /**
   * Returns what a write is named by; null where its reply does not show it.
   *
   * @param isMajority whether its concern was {@code majority}, and was met
   */
  static @Nullable Position ofWrite(Told told, String setName, boolean isMajority) {
    OpTime written = told.written;
    ServerState state = told.state;
    if (written == null && told.operation != null) {
      // After a write this is the write's own timestamp.
      if (isMajority) {
        return new Position(setName, told.operation);
      }
      if (state != null && state.isPrimary()) {
        written = new OpTime(state.applied().term(), told.operation);
      }
    }
    if (written == null) {
      return null;
    }
    boolean isShared = isMajority || (state != null && written.compareTo(state.committed()) <= 0);
    return new Position(isShared ? setName : key(setName, written.term()), written.version());
  }

  /** Returns what covers a read; null where its reply does not show it. */
  static @Nullable Position ofRead(Told told, String setName, boolean isMajority) {
    if (told.operation == null) {
      return null;
    }
    if (isMajority) {
      return new Position(setName, told.operation);
    }
    return told.state == null ? null : local(told.state, setName, told.operation);
  }

  /**
   * Returns what covers all that a server shows to reads with the concern {@code local}.
   *
   * @param operation of the read, enough at a member that is not primary; null for none
   */
  static Position local(ServerState state, String setName, @Nullable Long operation) {
    long covering;
    if (operation == null || state.isPrimary()) {
      // At a primary entries are visible before they count as applied.
      long applied = state.applied().version();
      covering = Long.compareUnsigned(state.heard(), applied) > 0 ? state.heard() : applied;
    } else {
      covering = operation;
    }
    boolean isShared = Long.compareUnsigned(covering, state.committed().version()) <= 0;
    return new Position(isShared ? setName : key(setName, state.applied().term()), covering);
  }
}
