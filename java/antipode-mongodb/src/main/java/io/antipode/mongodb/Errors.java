package io.antipode.mongodb;

import com.mongodb.MongoClientException;
import com.mongodb.MongoException;
import com.mongodb.MongoExecutionTimeoutException;
import com.mongodb.MongoInterruptedException;
import com.mongodb.MongoNodeIsRecoveringException;
import com.mongodb.MongoNotPrimaryException;
import com.mongodb.MongoOperationTimeoutException;
import com.mongodb.MongoServerException;
import com.mongodb.MongoSocketException;
import com.mongodb.MongoSocketOpenException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.MongoWriteConcernException;
import com.mongodb.MongoWriteException;
import com.mongodb.ServerAddress;
import com.mongodb.WriteError;
import com.mongodb.bulk.WriteConcernError;
import io.antipode.barrier.UnreachableException;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.bson.BsonDocument;

/** What the driver's errors say. */
final class Errors {
  static final int UNAUTHORIZED = 13;
  static final int DUPLICATE = 11_000;

  /** Of a command that reads what it writes. */
  private static final int CURSOR_KILLED = 237;

  /** The server has not heard of the time of a read concern. */
  static final int UNHEARD = 72;

  /** Shutdown, a change of state, an interruption, a limit of time: maybe in a write's middle. */
  private static final Set<Integer> INTERRUPTED =
      Set.of(24, 50, 64, 89, 91, 189, 262, 10_058, 11_600, 11_601, 11_602, 46_841);

  /** As these: no primary, not one any more, recovering, starting. */
  private static final Set<Integer> PASSING =
      Set.of(6, 7, 50, 89, 91, 189, 262, 9_001, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436);

  /** With these nothing was done: the user may not, the server does not know how. */
  private static final Set<Integer> REFUSED = Set.of(UNAUTHORIZED, 59);

  private Errors() {}

  /** Returns whether the server refused a command that it does not know, or that is not allowed. */
  static boolean isRefused(int code) {
    return REFUSED.contains(code);
  }

  /** Returns whether a command may have written before the server was interrupted. */
  static boolean isDoubtful(int code) {
    return INTERRUPTED.contains(code) || code == CURSOR_KILLED;
  }

  /** Returns whether a write may have been done although it ended so. */
  static boolean leavesDoubt(RuntimeException error) {
    if (error instanceof MongoServerException refused) {
      return INTERRUPTED.contains(refused.getCode());
    }
    if (error instanceof MongoOperationTimeoutException) {
      return true;
    }
    boolean wasNeverSent =
        error instanceof MongoClientException || error instanceof MongoSocketOpenException;
    return error instanceof MongoException && !wasNeverSent;
  }

  /** Returns whether the server may answer later. */
  static boolean isPassing(MongoException error) {
    return error instanceof MongoSocketException
        || error instanceof MongoTimeoutException
        || error instanceof MongoInterruptedException
        || error instanceof MongoExecutionTimeoutException
        || error instanceof MongoNotPrimaryException
        || error instanceof MongoNodeIsRecoveringException
        || PASSING.contains(error.getCode());
  }

  /**
   * Returns an error that asking again does not change.
   *
   * @throws UnreachableException if it may pass
   */
  static MongoException lasting(MongoException error) {
    if (isPassing(error)) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
    return error;
  }

  /** Returns what the driver throws for an entry of {@code writeErrors}. */
  static MongoException refused(BsonDocument error, ServerAddress server) {
    WriteError refusal =
        new WriteError(code(error), Bson.textAt(error, "errmsg"), Bson.docAt(error, "errInfo"));
    return new MongoWriteException(refusal, server, List.of());
  }

  /** Returns what the driver throws for {@code writeConcernError}. */
  static MongoException unmet(BsonDocument error, ServerAddress server) {
    WriteConcernError unmet =
        new WriteConcernError(
            code(error),
            Bson.textAt(error, "codeName"),
            Bson.textAt(error, "errmsg"),
            Bson.docAt(error, "errInfo"));
    return new MongoWriteConcernException(unmet, null, server, List.of());
  }

  static int code(BsonDocument error) {
    return Objects.requireNonNullElse(Bson.integerAt(error, "code"), 0L).intValue();
  }
}
