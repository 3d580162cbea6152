package io.antipode.redis;

import io.antipode.barrier.UnreachableException;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.push.PushListener;
import io.lettuce.core.codec.ByteArrayCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * One connection, which one thread uses at a time. Commands are sent when they are flushed: in one
 * piece.
 */
final class Link implements AutoCloseable {
  private static final Logger LOG = Logger.getLogger("antipode");
  private static final Duration CLOSING = Duration.ofSeconds(1);
  private static final String RUN_ID = "run_id:";

  private final StatefulRedisConnection<byte[], byte[]> connection;

  /** How it closes, once that began: Lettuce warns of a connection that is closed again. */
  private @Nullable Future<Void> closing;

  private @Nullable String refusal;
  private String process = "";

  private Link(StatefulRedisConnection<byte[], byte[]> connection) {
    this.connection = connection;
    connection.setAutoFlushCommands(false);
  }

  /**
   * Connects, and asks for {@code INFO} alone: there are proxies that end the connection there, and
   * users who may not.
   *
   * @throws UnreachableException if there is no connection now
   */
  static Link open(RedisClient client, RedisURI address, Duration timeout) {
    Link link;
    try {
      link =
          new Link(
              client
                  .connectAsync(ByteArrayCodec.INSTANCE, address)
                  .toCompletableFuture()
                  .get(timeout.toNanos(), TimeUnit.NANOSECONDS));
    } catch (ExecutionException | TimeoutException error) {
      throw new UnreachableException("no connection to " + address, error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new UnreachableException("interrupted", error);
    }
    try {
      Future<String> info = link.commands().info("server");
      link.flush();
      link.process = runId(link.answer(info, timeout));
    } catch (RedisCommandExecutionException error) {
      link.refusal = error.getMessage();
    } catch (RedisException error) {
      link.close();
      throw new UnreachableException("no answer from " + address, error);
    }
    return link;
  }

  static String runId(String info) {
    return info.lines()
        .filter(line -> line.startsWith(RUN_ID))
        .map(line -> line.substring(RUN_ID.length()).strip())
        .findFirst()
        .orElse("");
  }

  /** Returns why {@code INFO} may not be sent next to commands; null where it may. */
  @Nullable String refusal() {
    return refusal;
  }

  /** Returns the name of the server's process, which cannot change behind a live connection. */
  String process() {
    return process;
  }

  boolean isOpen() {
    return connection.isOpen();
  }

  RedisAsyncCommands<byte[], byte[]> commands() {
    return connection.async();
  }

  /** Takes a command whose answer comes with that of its transaction. */
  static void queued(Future<?> command) {
    Objects.requireNonNull(command, "command");
  }

  void flush() {
    connection.flushCommands();
  }

  void addListener(PushListener listener) {
    connection.addListener(listener);
  }

  /**
   * Returns an answer.
   *
   * @throws RedisCommandExecutionException if it is an error
   * @throws RedisException if there is none
   */
  <T> T answer(Future<T> answer, Duration timeout) {
    try {
      return answer.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException error) {
      throw new RedisCommandTimeoutException("no answer within " + timeout);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new RedisException("interrupted", error);
    } catch (CancellationException error) {
      throw new RedisException("the connection was closed", error);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof RedisException ours) {
        throw ours;
      }
      throw new RedisException(error.getCause());
    }
  }

  /**
   * Returns an element of a transaction's answers.
   *
   * @throws RedisCommandExecutionException if it is an error
   */
  static @Nullable Object element(TransactionResult answers, int nth) {
    Object element = answers.get(nth);
    if (element instanceof RedisException error) {
      throw error;
    }
    return element;
  }

  /** Returns an element that is a status or an answer to {@code INFO}. */
  static String string(TransactionResult answers, int nth) {
    return String.valueOf(element(answers, nth));
  }

  /** Returns an element that is the value of a key; null where it is not there. */
  static byte @Nullable [] value(TransactionResult answers, int nth) {
    return (byte[]) element(answers, nth);
  }

  /** Returns an element that is a list of values of keys or fields; null for what is not there. */
  static List<@Nullable String> values(TransactionResult answers, int nth) {
    return element(answers, nth) instanceof List<?> found ? texts(found) : List.of();
  }

  /** Returns values of keys or fields as texts; null for what is not there. */
  static List<@Nullable String> texts(List<?> found) {
    List<@Nullable String> values = new ArrayList<>();
    for (Object each : found) {
      boolean isThere = each instanceof KeyValue<?, ?> pair && pair.hasValue();
      values.add(isThere ? Look.text((byte[]) ((KeyValue<?, ?>) each).getValue()) : null);
    }
    return values;
  }

  /** Ends what another thread waits for on it. */
  void interrupt() {
    Future<Void> unused = closing();
  }

  private synchronized Future<Void> closing() {
    Future<Void> begun = closing;
    if (begun == null) {
      begun = connection.closeAsync();
      closing = begun;
    }
    return begun;
  }

  @Override
  public void close() {
    try {
      closing().get(CLOSING.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException | TimeoutException error) {
      LOG.log(Level.FINE, error, () -> "closing a connection failed");
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }
}
