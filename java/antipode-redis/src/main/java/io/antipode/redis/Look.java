package io.antipode.redis;

import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.TransactionResult;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One poll of the server behind a connection. */
final class Look {
  static final String SECTION = "replication";

  private final Link link;
  private final LogHistory history;
  private final String prefix;
  private final long deadlineNs;

  Look(Link link, LogHistory history, String prefix, Duration timeout) {
    this.link = link;
    this.history = history;
    this.prefix = prefix;
    this.deadlineNs = System.nanoTime() + timeout.toNanos();
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static @Nullable String text(byte @Nullable [] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  /** Returns the key of a promise's record. */
  static byte[] recordKey(Promise promise, String prefix) {
    return bytes(prefix + "promise:" + promise.id());
  }

  /** Returns the keys of the records of promises. */
  static byte[][] recordKeys(List<Promise> promises, String prefix) {
    return promises.stream().map(promise -> recordKey(promise, prefix)).toArray(byte[][]::new);
  }

  /**
   * Asks for the position, and at the same moment for the records of promises; where a log is
   * unknown, asks the log history once more: in one transaction with the position, so that one
   * history's log does not meet another's position.
   *
   * @throws RefusedException if the server does not let this user ask
   * @throws RedisException if there is no answer
   */
  Observation at(Collection<WriteId> writes, List<Promise> promises) throws RefusedException {
    ServerState state;
    List<@Nullable String> records = List.of();
    if (promises.isEmpty()) {
      state = state();
    } else {
      Link.queued(link.commands().multi());
      Link.queued(link.commands().info(SECTION));
      Link.queued(link.commands().mget(recordKeys(promises, prefix)));
      TransactionResult answers = executed();
      state = state(() -> Link.string(answers, 0));
      records = Link.values(answers, 1);
    }
    Observation shown = shown(state, writes, promises, records);
    List<String> logs = Positions.unknownLogs(shown, writes);
    if (logs.isEmpty()) {
      return shown;
    }
    Link.queued(link.commands().multi());
    Link.queued(link.commands().info(SECTION));
    byte[][] fields = logs.stream().map(Look::bytes).toArray(byte[][]::new);
    Link.queued(link.commands().hmget(bytes(LogHistory.KEY), fields));
    TransactionResult answers = executed();
    ServerState later = state(() -> Link.string(answers, 0));
    learn(later, logs, answers);
    return shown(
        later, writes, promises, later.log().equals(state.log()) ? records : nothing(promises));
  }

  private Observation shown(
      ServerState state,
      Collection<WriteId> writes,
      List<Promise> promises,
      List<@Nullable String> records) {
    return Positions.observation(state, link.process(), writes, history, promises, records);
  }

  private static List<@Nullable String> nothing(List<Promise> promises) {
    List<@Nullable String> nothing = new ArrayList<>();
    promises.forEach(each -> nothing.add(null));
    return nothing;
  }

  private void learn(ServerState state, List<String> logs, TransactionResult answers) {
    try {
      history.learn(state.log(), logs, Link.values(answers, 1));
    } catch (RedisCommandExecutionException error) {
      // The key is of another type, or may not be read: it says nothing.
    }
  }

  /** Returns how long the poll may still take. */
  private Duration left() {
    return Duration.ofNanos(Math.max(deadlineNs - System.nanoTime(), 0));
  }

  private TransactionResult executed() throws RefusedException {
    RedisFuture<TransactionResult> exec = link.commands().exec();
    link.flush();
    try {
      return link.answer(exec, left());
    } catch (RedisCommandExecutionException error) {
      throw refused(error);
    }
  }

  /**
   * Asks for the position alone.
   *
   * @throws RefusedException if the server does not let this user ask
   * @throws RedisException if there is no answer
   */
  ServerState state() throws RefusedException {
    RedisFuture<String> info = link.commands().info(SECTION);
    link.flush();
    return state(() -> link.answer(info, left()));
  }

  private interface Asking {
    String answer();
  }

  private static ServerState state(Asking asking) throws RefusedException {
    String info;
    try {
      info = asking.answer();
    } catch (RedisCommandExecutionException error) {
      throw refused(error);
    }
    ServerState state = ServerState.parse(info);
    if (state == null) {
      throw new RefusedException("INFO replication lacks what a position needs");
    }
    return state;
  }

  private static RefusedException refused(RedisCommandExecutionException error) {
    String message = String.valueOf(error.getMessage());
    if (Positions.isPassing(message)) {
      throw new UnreachableException(message, error);
    }
    return new RefusedException("INFO replication was refused: " + message);
  }
}
