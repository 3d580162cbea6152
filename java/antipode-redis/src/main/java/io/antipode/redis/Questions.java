package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnmetException;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.KeyValueListOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.RedisCommand;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** What is asked on a connection of the application's, next to its own commands. */
final class Questions {
  private static final ByteArrayCodec CODEC = ByteArrayCodec.INSTANCE;

  private Questions() {}

  private static CommandArgs<byte[], byte[]> args() {
    return new CommandArgs<>(CODEC);
  }

  private static <T> AsyncCommand<byte[], byte[], T> command(
      CommandType type, CommandOutput<byte[], byte[], T> output, CommandArgs<byte[], byte[]> args) {
    return new AsyncCommand<>(new Command<>(type, output, args));
  }

  /** Returns the question where the server stands. */
  static AsyncCommand<byte[], byte[], String> info() {
    return command(CommandType.INFO, new StatusOutput<>(CODEC), args().add(Look.SECTION));
  }

  /** Returns the question what the server has of promises. */
  static AsyncCommand<byte[], byte[], List<KeyValue<byte[], byte[]>>> records(
      List<Promise> promises, String prefix) {
    byte[][] keys = Look.recordKeys(promises, prefix);
    return command(
        CommandType.MGET,
        new KeyValueListOutput<>(CODEC, Arrays.asList(keys)),
        args().addKeys(keys));
  }

  /** Returns the question where logs ended. */
  static AsyncCommand<byte[], byte[], List<KeyValue<byte[], byte[]>>> ends(List<String> logs) {
    byte[][] fields = logs.stream().map(Look::bytes).toArray(byte[][]::new);
    return command(
        CommandType.HMGET,
        new KeyValueListOutput<>(CODEC, Arrays.asList(fields)),
        args().addKey(Look.bytes(LogHistory.KEY)).addKeys(fields));
  }

  /** Returns the note where logs ended. */
  static AsyncCommand<byte[], byte[], String> note(Map<String, Long> fields) {
    CommandArgs<byte[], byte[]> args = args().addKey(Look.bytes(LogHistory.KEY));
    fields.forEach((log, end) -> args.addKey(Look.bytes(log)).add(end));
    return command(CommandType.HMSET, new StatusOutput<>(CODEC), args);
  }

  /** Returns a question as a command of a connection: how it is packed is its own. */
  @SuppressWarnings("unchecked")
  static <K, V> RedisCommand<K, V, ?> of(RedisCommand<byte[], byte[], ?> question) {
    return (RedisCommand<K, V, ?>) (RedisCommand<?, ?, ?>) question;
  }

  /** Returns what a server said of where it stands; null where it did not. */
  static @Nullable ServerState state(CompletableFuture<String> info) {
    return info.isDone() && !info.isCompletedExceptionally()
        ? ServerState.parse(info.join())
        : null;
  }

  /**
   * Returns what a poll shows where the server does not say where it stands.
   *
   * @throws UnreachableException if that may pass
   */
  static Observation refused(Floor floor, @Nullable Throwable error) {
    if (error != null && !(error instanceof RedisCommandExecutionException)) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
    return refused(floor, error == null ? null : String.valueOf(error.getMessage()));
  }

  /**
   * Returns what a poll shows where the server answered with an error; null for an answer that is
   * no position.
   *
   * @throws UnreachableException if that may pass
   */
  static Observation refused(Floor floor, @Nullable String error) {
    String cause = error == null ? "INFO replication lacks what a position needs" : error;
    if (Positions.isPassing(cause)) {
      throw new UnreachableException(cause);
    }
    Observation.Builder shown = Observation.of("");
    for (WriteId write : floor.writes()) {
      shown.write(write, Status.UNDECIDABLE, cause);
    }
    floor.promises().forEach(promise -> shown.promise(promise, Status.UNDECIDABLE));
    return shown.build();
  }

  /** Returns all that a floor demands. */
  static List<Dependency> demanded(Floor floor) {
    List<Dependency> demanded = new ArrayList<>(floor.writes());
    demanded.addAll(floor.promises());
    return demanded;
  }

  /**
   * Sees whether a read that is queued was demanded more than was waited for before its
   * transaction: a question now would be one of the transaction.
   *
   * @throws UnmetException if it was
   */
  static void requireShown(Floor floor, Collection<Dependency> shown) {
    if (!shown.containsAll(demanded(floor))) {
      boolean unused = floor.accepts(refused(floor, "it was demanded after MULTI"));
    }
  }
}
