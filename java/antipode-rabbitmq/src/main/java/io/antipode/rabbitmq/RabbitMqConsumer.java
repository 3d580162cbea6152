package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Promise;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Handles the messages of a queue once what they depend on is visible here, each in a scope of its
 * own.
 *
 * <pre>{@code
 * ConsumerOptions options = ConsumerOptions.of("inbox", "notifications");
 * try (RabbitMqConsumer worker =
 *     new RabbitMqConsumer(connection.createChannel(), options, message -> show(message))) {
 *   worker.run();
 * }
 * }</pre>
 *
 * <p>What is not visible yet goes back to the broker for a while, so that no worker waits and what
 * is queued after it gets its turn: possibly the very message whose handling makes it visible. This
 * reorders messages. At least once: a message is acknowledged when its handler has returned, or
 * when the broker has confirmed its copy.
 *
 * <p>Handlers run in the thread that calls {@link #run}, one after the other. {@link #stop} is for
 * any thread.
 */
public final class RabbitMqConsumer implements AutoCloseable {
  private static final long SLICE_NS = 1_000_000_000;

  /** How late a barrier may report how it ended. It always does; no message depends on that. */
  private static final long OVERDUE_NS = 5_000_000_000L;

  private final Channel channel;
  private final ConsumerOptions options;
  private final Handler handler;
  private final RabbitMqInstrumentation instrumentation;
  private final Resender resender;
  private final BlockingQueue<Step> steps = new LinkedBlockingQueue<>();

  /** What the broker sent and nobody settled, by delivery tag. */
  private final Map<Long, Unsettled> unsettled = new ConcurrentHashMap<>();

  private volatile @Nullable String tag;
  private volatile boolean isStopping;
  private volatile boolean isClosed;
  private @Nullable Exception failure;

  /** Handles one message. */
  public interface Handler {
    /**
     * Handles it, and leaves acknowledging to the consumer. Where it throws what a barrier throws,
     * its message is deferred or given up, as by the consumer itself.
     *
     * @param message as it was published first, however often it was deferred
     */
    void handle(Delivery message) throws Exception;
  }

  private interface Step {
    void run() throws Exception;
  }

  /** One of them; it has no message until it is judged. */
  private static final class Unsettled {
    @Nullable ConsumedMessage message;
  }

  /**
   * Consumes nothing yet.
   *
   * @param channel for this consumer alone; whether it is instrumented makes no difference
   */
  public RabbitMqConsumer(Channel channel, ConsumerOptions options, Handler handler) {
    this.channel = InstrumentedChannel.real(Objects.requireNonNull(channel, "channel"));
    this.options = Objects.requireNonNull(options, "options");
    this.handler = Objects.requireNonNull(handler, "handler");
    this.instrumentation = RabbitMqInstrumentation.of(options.datastore());
    this.resender = new Resender(this.channel.getConnection());
    instrumentation.register();
  }

  /**
   * Begins to consume; {@link #run} does. May be called again.
   *
   * @throws IOException as the client does
   */
  public void start() throws IOException {
    if (tag == null && !isClosed) {
      channel.basicQos(options.prefetch());
      tag = channel.basicConsume(options.queue(), false, new Receiver());
    }
  }

  /**
   * Handles messages until {@link #stop}, and closes the consumer: messages that wait or were sent
   * ahead go back to the queue.
   *
   * @throws Exception what the handler threw, under {@link OnError#RAISE}
   * @throws io.antipode.ConfigurationException if messages cannot be deferred here, or barriers are
   *     set up wrongly
   * @throws IOException if the broker ended the consumer
   * @throws ShutdownSignalException if the channel is gone, also where its connection recovers by
   *     itself: open another one, and consume again
   * @throws InterruptedException if the thread was interrupted; the message in hand goes back
   */
  public void run() throws Exception {
    while (!runFor(Duration.ofDays(1))) {
      // Goes on.
    }
  }

  /**
   * Handles messages for a while, for callers that go on later: the consumer stays as it is.
   *
   * @return whether it has ended, by {@link #stop}; then it is closed
   * @throws Exception as {@link #run}, and it is closed
   */
  public boolean runFor(Duration most) throws Exception {
    long end = System.nanoTime() + most.toNanos();
    boolean isLeft = false;
    try {
      start();
      while (!isEnded()) {
        long leftNs = end - System.nanoTime();
        if (leftNs <= 0) {
          isLeft = true;
          return false;
        }
        Step step = steps.poll(Math.min(leftNs, SLICE_NS), TimeUnit.NANOSECONDS);
        if (step != null) {
          step.run();
        }
        endOverdue();
      }
    } finally {
      if (!isLeft) {
        close();
      }
    }
    Exception error = failure;
    if (error != null) {
      throw error;
    }
    return true;
  }

  private boolean isEnded() {
    return isStopping || isClosed || failure != null;
  }

  /** Makes {@link #run} return after the message in hand. For handlers and any thread. */
  public void stop() {
    isStopping = true;
    steps.add(() -> {});
  }

  /** Stops to consume, and gives back what is not settled; may be called again. */
  @Override
  public void close() {
    isClosed = true;
    String consumed = tag;
    tag = null;
    if (consumed != null) {
      try {
        channel.basicCancel(consumed);
      } catch (IOException | RuntimeException gone) {
        // Then the broker gives back what it sent.
      }
    }
    for (Long each : List.copyOf(unsettled.keySet())) {
      giveBack(each);
    }
    resender.close();
  }

  private void giveBack(long each) {
    Unsettled held = unsettled.remove(each);
    if (held == null) {
      return;
    }
    if (held.message != null) {
      held.message.waitNoMore();
      held.message.end();
    }
    try {
      channel.basicNack(each, false, true);
    } catch (IOException | RuntimeException gone) {
      // Then the broker gives it back.
    }
  }

  /** What the client's threads report: it is done in the thread that runs. */
  private final class Receiver extends DefaultConsumer {
    Receiver() {
      super(channel);
    }

    @Override
    public void handleDelivery(
        String consumer, Envelope envelope, BasicProperties properties, byte[] body) {
      Unsettled one = new Unsettled();
      unsettled.put(envelope.getDeliveryTag(), one);
      Delivery delivered = new Delivery(envelope, properties, body);
      Context around = Context.current();
      steps.add(() -> begin(one, delivered, around));
      if (isClosed) {
        giveBack(envelope.getDeliveryTag());
      }
    }

    @Override
    public void handleCancel(String consumer) {
      steps.add(() -> failure = new IOException("the broker ended the consumer of " + queue()));
    }

    @Override
    public void handleShutdownSignal(String consumer, ShutdownSignalException signal) {
      steps.add(() -> failure = signal);
    }
  }

  private String queue() {
    return options.queue();
  }

  // One message.

  private interface Work {
    void run() throws Exception;
  }

  /** Does a step of a message in its scope, which ends unless the message waits then. */
  private void step(ConsumedMessage message, Work work) throws Exception {
    try (ScopeBlock block = message.enter()) {
      work.run();
    } finally {
      if (!message.isWaiting()) {
        message.end();
      }
    }
  }

  private boolean isHeld(ConsumedMessage message) {
    Unsettled held = unsettled.get(message.tag());
    return held != null && held.message == message;
  }

  private void begin(Unsettled one, Delivery delivered, Context around) throws Exception {
    if (unsettled.get(delivered.getEnvelope().getDeliveryTag()) != one) {
      return; // It was given back.
    }
    ConsumedMessage message =
        new ConsumedMessage(delivered, around, Time.now().toEpochMilli(), instrumentation);
    one.message = message;
    if (message.deferral.isExpired()) {
      step(message, () -> expire(message));
    } else if (isReady(message)) {
      step(message, () -> look(message));
    }
  }

  /** Asks which promise its handler will fulfil; that may fail as a handler does. */
  private boolean isReady(ConsumedMessage message) throws Exception {
    Function<Delivery, @Nullable Promise> fulfils = options.fulfils();
    if (fulfils == null) {
      return true;
    }
    Promise promise;
    try (ScopeBlock block = message.enter()) {
      promise = fulfils.apply(message.given);
    } catch (RuntimeException error) {
      step(message, () -> failed(message, error));
      return false;
    }
    if (promise != null) {
      message.fulfil(promise);
    }
    return true;
  }

  private void look(ConsumedMessage message) throws Exception {
    BarrierResult result = Barriers.check(options.look());
    if (result.isOk()) {
      handle(message);
    } else if (ConsumerOptions.isHopeless(result) || waiting() >= options.mayWait()) {
      unmet(message, result);
    } else {
      long due = System.nanoTime() + options.timeout().toNanos() + OVERDUE_NS;
      message.waitIn(
          Barriers.barrierCallback(
              ended -> steps.add(() -> resume(message, ended)), options.barrier()),
          due);
    }
  }

  private long waiting() {
    return unsettled.values().stream()
        .filter(each -> each.message != null && each.message.isWaiting())
        .count();
  }

  private void resume(ConsumedMessage message, BarrierResult result) throws Exception {
    if (isHeld(message) && message.isWaiting()) {
      message.waitNoMore();
      step(message, () -> after(message, result));
    }
  }

  /** Judges messages again whose barriers do not report how they ended. */
  private void endOverdue() throws Exception {
    long now = System.nanoTime();
    for (Unsettled each : List.copyOf(unsettled.values())) {
      ConsumedMessage message = each.message;
      if (message != null && message.isOverdue(now)) {
        message.waitNoMore();
        step(message, () -> after(message, Barriers.check(options.look())));
      }
    }
  }

  private void after(ConsumedMessage message, BarrierResult result) throws Exception {
    if (result.isOk()) {
      handle(message);
    } else {
      unmet(message, result);
    }
  }

  private void handle(ConsumedMessage message) throws Exception {
    try {
      handler.handle(message.given);
    } catch (UnmetException error) { // A barrier of the handler's own.
      unmet(message, error.result());
      return;
    } catch (Exception error) {
      if (error instanceof InterruptedException || Thread.currentThread().isInterrupted()) {
        throw error; // Closing gives the message back.
      }
      failed(message, error);
      return;
    }
    channel.basicAck(settled(message), false);
  }

  private void unmet(ConsumedMessage message, BarrierResult result) throws Exception {
    if (ConsumerOptions.isHopeless(result) || options.isSpent(message.deferral.attempts())) {
      bury(message, Deferral.why(result));
    } else {
      defer(message, result.eta());
    }
  }

  private void failed(ConsumedMessage message, Exception error) throws Exception {
    OnError onError = options.onError();
    if (onError != OnError.RAISE) {
      Counts.LOG.log(Level.WARNING, error, () -> "a handler of " + queue() + " failed");
    }
    switch (onError) {
      case RAISE -> {
        failure = error;
        channel.basicNack(settled(message), false, true);
      }
      case REQUEUE -> channel.basicNack(settled(message), false, true);
      case DEFER -> {
        if (options.isSpent(message.deferral.attempts())) {
          bury(message, Deferral.why(error));
        } else {
          defer(message, null);
        }
      }
      case DEAD_LETTER -> bury(message, Deferral.why(error));
    }
  }

  /** Puts it into a delay queue, and only then takes it from the work queue. */
  private void defer(ConsumedMessage message, @Nullable Duration eta) throws Exception {
    Delays delays = options.delays();
    int delayMs = delays.pickMs(eta, message.deferral.attempts());
    BasicProperties properties = message.again(message.deferral.deferred());
    resender.defer(delays, delayMs, properties, message.given.getBody());
    Counts.count("message_deferred", options.datastore());
    channel.basicAck(settled(message), false);
  }

  /** Makes it a dead letter, and only then takes it from the work queue. */
  private void bury(ConsumedMessage message, Map<String, Object> why) throws Exception {
    Counts.LOG.warning(() -> "a message of " + queue() + " is given up: " + why.get("message"));
    String dead = options.deadLetters();
    if (dead == null) {
      channel.basicNack(settled(message), false, false);
    } else {
      BasicProperties properties = message.again(message.deferral.dead(why, queue()));
      resender.bury(dead, properties, message.given.getBody());
      channel.basicAck(settled(message), false);
    }
    Counts.count("message_dead_lettered", options.datastore());
  }

  /** Lets it go as the broker lets go of what expires: to the queue's dead-letter exchange. */
  private void expire(ConsumedMessage message) throws IOException {
    channel.basicNack(settled(message), false, false);
    Counts.count("message_expired", options.datastore());
  }

  /** Returns its delivery tag, which is about to be acknowledged one way or the other. */
  private long settled(ConsumedMessage message) {
    unsettled.remove(message.tag());
    return message.tag();
  }
}
