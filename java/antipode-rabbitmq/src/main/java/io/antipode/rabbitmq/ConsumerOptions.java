package io.antipode.rabbitmq;

import com.rabbitmq.client.Delivery;
import io.antipode.ConfigurationException;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.lineage.Promise;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What a consumer does with its messages. A value that never changes: {@code with} methods return
 * another one.
 */
public final class ConsumerOptions {
  private static final int MOST = 65_535; // AMQP's.
  private static final double NANOS = 1e9;

  private final Draft values;

  private ConsumerOptions(Draft values) {
    this.values = values;
    Delays ignored = delays(); // Refuses delays that are none.
  }

  /**
   * Returns options that judge each message once and defer what is not visible yet, up to 20 times,
   * for 0.1 to 30 seconds.
   *
   * @param queue what to consume
   * @param datastore the name that every service gives to this exchange or broker
   */
  public static ConsumerOptions of(String queue, String datastore) {
    if (queue.isEmpty() || datastore.isEmpty()) {
      throw new ConfigurationException("a queue and a datastore have names that are not empty");
    }
    return new ConsumerOptions(new Draft(queue, datastore));
  }

  /**
   * Returns these options with messages that wait here first: up to {@code prefetch - 1} at once,
   * in the background. What is still unmet then is deferred.
   *
   * @param timeout for how long one message may wait
   */
  public ConsumerOptions waiting(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new ConfigurationException("a message waits for a positive time, not " + timeout);
    }
    return with(draft -> draft.timeout = timeout);
  }

  /** Returns these options with how often a message is judged until it is given up. */
  public ConsumerOptions withMaxAttempts(int attempts) {
    requireWithin("max attempts", attempts);
    return with(draft -> draft.maxAttempts = attempts);
  }

  /**
   * Returns these options with the shortest and the longest delay. It doubles with each attempt,
   * and is at least what the store estimates.
   */
  public ConsumerOptions withDelay(Duration least, Duration most) {
    return with(
        draft -> {
          draft.least = least;
          draft.most = most;
        });
  }

  /**
   * Returns these options with the queue of what is given up, which is declared durable where there
   * is none; by default {@code antipode.dead.} and the name of the queue.
   */
  public ConsumerOptions withDeadLetter(String queue) {
    Objects.requireNonNull(queue, "queue");
    return with(
        draft -> {
          draft.deadLetter = queue;
          draft.rejects = false;
        });
  }

  /**
   * Returns these options for a queue with a dead-letter exchange of its own: what is given up is
   * rejected. Without such an exchange it is lost.
   */
  public ConsumerOptions withDeadLetterByRejection() {
    return with(draft -> draft.rejects = true);
  }

  /** Returns these options with what becomes of a message whose handler failed. */
  public ConsumerOptions withOnError(OnError onError) {
    Objects.requireNonNull(onError, "onError");
    return with(draft -> draft.onError = onError);
  }

  /** Returns these options for some datastores alone, as barriers take them. */
  public ConsumerOptions withOnly(String... datastores) {
    return with(draft -> draft.only = Set.copyOf(Arrays.asList(datastores)));
  }

  /** Returns these options without some datastores, as barriers take them. */
  public ConsumerOptions withExclude(String... datastores) {
    return with(draft -> draft.exclude = Set.copyOf(Arrays.asList(datastores)));
  }

  /** Returns these options with how many messages the broker sends ahead; 10 by default. */
  public ConsumerOptions withPrefetch(int prefetch) {
    requireWithin("prefetch", prefetch);
    return with(draft -> draft.prefetch = prefetch);
  }

  /** Returns these options with further arguments of the delay queues. */
  public ConsumerOptions withDelayArguments(Map<String, Object> arguments) {
    return with(draft -> draft.delayArguments = Map.copyOf(arguments));
  }

  /**
   * Returns these options with what says which promise the handler of a message will fulfil; null
   * for none. The message does not wait for that one, which would be for itself.
   */
  public ConsumerOptions withFulfils(Function<Delivery, @Nullable Promise> fulfils) {
    Objects.requireNonNull(fulfils, "fulfils");
    return with(draft -> draft.fulfils = fulfils);
  }

  private static void requireWithin(String name, int number) {
    if (number < 1 || number > MOST) {
      throw new ConfigurationException(name + " must be between 1 and " + MOST + ", not " + number);
    }
  }

  private ConsumerOptions with(Consumer<Draft> change) {
    Draft draft = new Draft(values);
    change.accept(draft);
    return new ConsumerOptions(draft);
  }

  String queue() {
    return values.queue;
  }

  String datastore() {
    return values.datastore;
  }

  int prefetch() {
    return values.prefetch;
  }

  OnError onError() {
    return values.onError;
  }

  @Nullable Function<Delivery, @Nullable Promise> fulfils() {
    return values.fulfils;
  }

  /** Returns for how long a message may wait here. */
  Duration timeout() {
    return Objects.requireNonNullElse(values.timeout, Duration.ZERO);
  }

  /** Returns how many messages may wait at once: one of the prefetched goes on being judged. */
  int mayWait() {
    return values.timeout == null ? 0 : values.prefetch - 1;
  }

  Delays delays() {
    return new Delays(
        values.queue,
        values.least.toNanos() / NANOS,
        values.most.toNanos() / NANOS,
        values.delayArguments);
  }

  /** Returns the queue of dead letters; null where they are rejected. */
  @Nullable String deadLetters() {
    if (values.rejects) {
      return null;
    }
    String named = values.deadLetter;
    return named == null ? Delays.within("antipode.dead." + values.queue) : named;
  }

  /** Returns whether a message that was deferred so often may not be once more. */
  boolean isSpent(int attempts) {
    return attempts + 1 >= values.maxAttempts;
  }

  BarrierOptions look() {
    return asking(BarrierOptions.check());
  }

  BarrierOptions barrier() {
    return asking(BarrierOptions.timeout(timeout()));
  }

  private BarrierOptions asking(BarrierOptions options) {
    BarrierOptions asking = options.withExclude(values.exclude);
    return values.only == null ? asking : asking.withOnly(values.only);
  }

  /** Returns whether waiting longer cannot make an unmet result succeed. */
  static boolean isHopeless(BarrierResult result) {
    return !(result.error() instanceof BarrierTimeoutException);
  }

  /** The values, while they are put together. */
  private static final class Draft {
    private final String queue;
    private final String datastore;
    private @Nullable Duration timeout;
    private int maxAttempts = 20;
    private Duration least = Duration.ofMillis(100);
    private Duration most = Duration.ofSeconds(30);
    private @Nullable String deadLetter;
    private boolean rejects;
    private OnError onError = OnError.RAISE;
    private @Nullable Set<String> only;
    private Set<String> exclude = Set.of();
    private int prefetch = 10;
    private Map<String, Object> delayArguments = Map.of();
    private @Nullable Function<Delivery, @Nullable Promise> fulfils;

    Draft(String queue, String datastore) {
      this.queue = queue;
      this.datastore = datastore;
    }

    Draft(Draft other) {
      queue = other.queue;
      datastore = other.datastore;
      timeout = other.timeout;
      maxAttempts = other.maxAttempts;
      least = other.least;
      most = other.most;
      deadLetter = other.deadLetter;
      rejects = other.rejects;
      onError = other.onError;
      only = other.only;
      exclude = other.exclude;
      prefetch = other.prefetch;
      delayArguments = other.delayArguments;
      fulfils = other.fulfils;
    }
  }
}
