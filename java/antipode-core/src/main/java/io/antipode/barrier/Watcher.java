package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Polls one server for everybody who waits there: one connection, and one thread while somebody
 * waits. Equal waits share each poll.
 */
final class Watcher implements Stepper {
  /** The longest one poll may take; a stopped server is noticed after this. */
  static final Duration LOOK = Duration.ofSeconds(1);

  /** The longest that making a connection may take: several round trips, to a server far away. */
  static final Duration CONNECT = Duration.ofSeconds(5);

  /** For how long nobody who is in a hurry asks again where no server was. */
  private static final Duration ABSENT = Duration.ofSeconds(1);

  private static final int MOST_CAUSES = 10;

  /** Why nobody polls any more. */
  static final String CLOSED = "its shim was closed";

  /** The longest pause at a server that ends it: what it cannot push is polled then. */
  private static final Duration SLICE = Duration.ofSeconds(1);

  /** What the second half of a poll gets at least: clients take 0 for "no limit". */
  private static final Duration LEAST_LOOK = Duration.ofMillis(5);

  /** A pause that ends so many microseconds before its time was ended by the server. */
  private static final long PUSHED_US = 500;

  private final Shim shim;
  private final Clock clock;
  private final Wake wake = new Wake();
  private final Knowledge knowledge = new Knowledge();
  private final Pacer pacer = new Pacer();
  private final Expectation expectation = new Expectation();

  /** Held by who uses the endpoint. */
  private final ReentrantLock using = new ReentrantLock();

  /** Somebody who may end by itself, and when. */
  private record Bound(long until, Subscriber subscriber) {}

  private final PriorityQueue<Bound> bounds =
      new PriorityQueue<>((a, b) -> Long.signum(a.until - b.until));

  private Subscribers subscribers = new Subscribers();

  /**
   * When the last poll began that showed anything, of those that follow each other at once the
   * first; null after one that showed nothing.
   */
  private @Nullable Long polled;

  /** The same, before the poll that is made now. */
  private @Nullable Long since;

  /** When the present pause is over. */
  private long due;

  /** Whether who waits polled in vain just now. */
  private boolean isPolled;

  private boolean isRunning;
  private @Nullable Thread thread;
  private volatile boolean isClosed;
  private volatile @Nullable Endpoint endpoint;
  private volatile String away = "";

  /** When no server was there; null where one was since. */
  private volatile @Nullable Long absentSince;

  private volatile @Nullable LastPoll lastPoll;

  Watcher(Shim shim, Clock clock) {
    this.shim = shim;
    this.clock = clock;
  }

  @Override
  public String name() {
    return "antipode-watch-" + shim.datastore();
  }

  @Override
  public Wake wake() {
    return wake;
  }

  Clock clock() {
    return clock;
  }

  /** Returns why the last poll failed; empty where it did not. */
  String away() {
    return away;
  }

  /** Returns whether no server was there a moment ago: refused, or a host without an address. */
  boolean isAbsent() {
    Long since = absentSince;
    return since != null && clock.nanoTime() - since < ABSENT.toNanos();
  }

  /** Knows, and logs once while it lasts, that no server is there. */
  private void noteAbsence(Throwable error) {
    if (!(error instanceof UnreachableException && isAbsence(error))) {
      absentSince = null;
      return;
    }
    if (absentSince == null) {
      Counts.LOG.warning(
          () ->
              "no server of "
                  + shim.datastore()
                  + " is there, and reads that can go elsewhere do not wait: "
                  + why(error));
    }
    absentSince = clock.nanoTime();
  }

  private static boolean isAbsence(Throwable error) {
    Throwable found = error;
    for (int depth = 0; found != null && depth < MOST_CAUSES; depth++) {
      boolean isRefused =
          found instanceof ConnectException
              && String.valueOf(found.getMessage()).toLowerCase(Locale.ROOT).contains("refused");
      if (isRefused
          || found instanceof UnknownHostException
          || found instanceof UnresolvedAddressException) {
        return true;
      }
      found = found.getCause();
    }
    return false;
  }

  /** Returns how the last poll ended; null before the first. */
  @Nullable LastPoll lastPoll() {
    return lastPoll;
  }

  /** Returns whether a thread polls at this moment. */
  synchronized boolean isWatching() {
    return isRunning;
  }

  /**
   * Polls for a subscriber until it wants nothing more or unsubscribes. Where that cannot be, it
   * learns so at once; who comes later tries again.
   *
   * @param isPolled whether {@link #tryLook} was in vain just now: else it polls at once
   */
  void subscribe(Subscriber subscriber, boolean isPolled) {
    subscribe(subscriber, isPolled, null);
  }

  /** Polls for a subscriber that may want nothing more once a time of the clock is over. */
  void subscribeUntil(Subscriber subscriber, long until) {
    subscribe(subscriber, false, new Bound(until, subscriber));
  }

  private void subscribe(Subscriber subscriber, boolean isPolled, @Nullable Bound bound) {
    String datastore = shim.datastore();
    Set<Dependency> wanted = subscriber.wanted(datastore);
    if (wanted.isEmpty()) {
      return;
    }
    String cause;
    synchronized (this) {
      cause = isClosed ? CLOSED : join(subscriber, wanted, isPolled);
      if (cause.isEmpty() && bound != null) {
        bounds.add(bound);
      }
      if (subscriber.wanted(datastore).isEmpty()) { // It ended meanwhile, elsewhere.
        unsubscribe(subscriber);
      }
    }
    if (!cause.isEmpty()) {
      subscriber.failed(datastore, cause);
    }
  }

  /** Returns why nobody polls for it; empty where somebody does. */
  private String join(Subscriber subscriber, Set<Dependency> wanted, boolean isPolled) {
    Thread held = thread;
    long now = micros();
    if (isRunning && (held == null || held.isAlive())) {
      this.isPolled = false;
      wake.set();
    } else {
      this.isPolled = isPolled;
      polled = isPolled ? now : null;
      try {
        thread = clock.spawn(this);
      } catch (NoThreadException error) {
        return error.getMessage() == null ? "" : error.getMessage();
      }
      isRunning = true;
    }
    subscribers.join(subscriber, wanted, now);
    return "";
  }

  /** Stops polling for a subscriber; without others the thread ends. */
  synchronized void unsubscribe(Subscriber subscriber) {
    subscribers.leave(subscriber);
    if (subscribers.isEmpty()) {
      wake.set();
    }
  }

  private long micros() {
    return Math.floorDiv(clock.nanoTime() + 500, 1_000);
  }

  /** Returns what is known to be visible without a poll; null where nothing is. */
  @Nullable Observation recall(Collection<Dependency> wanted) {
    Endpoint open = endpoint;
    return open == null || !open.isPinned() ? null : knowledge.recall(wanted);
  }

  /** Returns whether it is known without a poll that the server does not know a write's log. */
  boolean lacks(WriteId write) {
    return knowledge.lacks(write, clock.nanoTime());
  }

  /**
   * Polls from the caller's thread; null where the watcher has to. That is when it is at work
   * itself, and when there is no connection: to make one may outlast a short deadline, only to be
   * given up and begun again by the next caller.
   */
  @Nullable Observation tryLook(Collection<Dependency> wanted, Duration timeout) throws Exception {
    if (isClosed || !using.tryLock()) {
      return null;
    }
    try {
      return endpoint == null ? null : look(wanted, timeout);
    } finally {
      using.unlock();
    }
  }

  @Override
  public @Nullable Duration step() {
    boolean isWoken = wake.isSet();
    wake.clear();
    if (!isWaitedFor()) {
      rest();
      return null;
    }
    Set<Dependency> wanted;
    boolean isFirst;
    synchronized (this) {
      boolean isFresh = isPolled;
      isPolled = false;
      if (isFresh && !endsPauses()) { // That pause needs a poll of its own.
        return paced();
      }
      isFirst = !subscribers.isUnasked();
      if (isFirst) {
        since = polled;
        polled = null;
      }
      wanted = subscribers.asks();
    }
    if (wanted.isEmpty()) { // The last one has left at this moment.
      return Duration.ZERO;
    }
    String datastore = shim.datastore();
    long now = micros();
    Observation observation;
    using.lock();
    try {
      observation = look(wanted, LOOK);
    } catch (UnreachableException error) {
      Counts.count("poll_failed", datastore);
      fail(each -> each.unreachable(datastore, why(error)));
      return pacer.backoff();
    } catch (Throwable error) { // Whatever it is, nobody may hang on it.
      Counts.LOG.log(Level.WARNING, error, () -> "a poll of " + datastore + " failed for good");
      fail(each -> each.failed(datastore, error.toString()));
      return Duration.ZERO;
    } finally {
      using.unlock();
    }
    pacer.succeeded();
    List<Long> ended = tell(observation, isFirst ? Long.valueOf(now) : null);
    synchronized (this) {
      boolean isPushed = !isWoken && now < due - PUSHED_US;
      learn(ended, isPushed ? Long.valueOf(now) : since, now);
      return subscribers.isUnasked() ? Duration.ZERO : paced();
    }
  }

  /** Tells those who waited when the poll began that it showed nothing. */
  private void fail(Consumer<Subscriber> tell) {
    List<Subscribers.Waiting> waiting;
    synchronized (this) {
      polled = null;
      waiting = subscribers.failed();
    }
    waiting.forEach(each -> tell.accept(each.subscriber()));
    synchronized (this) {
      List<Long> unused = subscribers.settle(waiting, shim.datastore());
    }
  }

  /**
   * Tells whom a poll was for, or met; returns when those joined who wait no longer.
   *
   * @param first when it began; null for one that followed another at once
   */
  private List<Long> tell(Observation observation, @Nullable Long first) {
    Subscribers.Told told;
    synchronized (this) {
      polled = first == null ? polled : first;
      told = subscribers.shown(observation, clock.nanoTime());
    }
    for (Subscribers.Tell each : told.whom()) {
      Subscriber subscriber = each.one().subscriber();
      Long left = each.left();
      if (left != null) {
        subscriber.waitedOn(left);
      }
      subscriber.take(shim.datastore(), told.observation());
    }
    synchronized (this) {
      return subscribers.settle(told.all(), shim.datastore());
    }
  }

  /** Remembers one wait of those that a poll ended which the one before had not. */
  private void learn(List<Long> ended, @Nullable Long until, long now) {
    if (until == null) {
      return;
    }
    List<Long> waits = ended.stream().filter(each -> each <= until).sorted().toList();
    if (!waits.isEmpty()) {
      long began = waits.get(waits.size() / 2);
      expectation.learn(until - began, now - began);
    }
  }

  /** Returns the pause to the next poll, after one that left something to wait for. */
  private Duration paced() {
    long now = micros();
    if (endsPauses()) {
      due = now + SLICE.toNanos() / 1_000;
      return SLICE;
    }
    if (subscribers.isEmpty()) {
      return Duration.ZERO;
    }
    due = expectation.next(now, subscribers.joined());
    return Duration.ofNanos((due - now) * 1_000);
  }

  /** Returns whether the server ends a pause once what is waited for may be visible. */
  private boolean endsPauses() {
    Endpoint open = endpoint;
    return open != null
        && open.isBlocking()
        && (open.isBlockingForPromises() || !subscribers.isPromised());
  }

  /** Returns whether anybody waits; where nobody does, the watcher is at rest. */
  private synchronized boolean isWaitedFor() {
    long now = clock.nanoTime();
    for (Bound first = bounds.peek(); first != null && first.until - now < 0; ) {
      bounds.remove();
      if (first.subscriber.wanted(shim.datastore()).isEmpty()) {
        subscribers.leave(first.subscriber);
      }
      first = bounds.peek();
    }
    isRunning = !subscribers.isEmpty();
    if (!isRunning) {
      bounds.clear();
    }
    return isRunning;
  }

  /**
   * Polls once, after connecting if need be, which has its own limit: who waits may give up while a
   * connection is made, and it is kept for who waits next.
   */
  private Observation look(Collection<Dependency> wanted, Duration timeout) throws Exception {
    Counts.count("polls", shim.datastore());
    try {
      Endpoint open = endpoint;
      if (open == null) {
        open = shim.openEndpoint(CONNECT);
        endpoint = open;
      }
      Observation observation = observe(open, wanted, clock.nanoTime() + timeout.toNanos());
      away = "";
      absentSince = null;
      lastPoll = new LastPoll(clock.now(), "");
      knowledge.learn(observation, clock.nanoTime());
      return observation;
    } catch (Throwable error) {
      away = error instanceof UnreachableException ? why(error) : "";
      lastPoll = new LastPoll(clock.now(), why(error));
      noteAbsence(error);
      dropEndpoint();
      throw error;
    }
  }

  /** Returns what an endpoint shows of writes and promises: one poll of one history. */
  private Observation observe(Endpoint open, Collection<Dependency> wanted, long deadline)
      throws Exception {
    List<WriteId> writes = new ArrayList<>();
    List<Promise> promises = new ArrayList<>();
    for (Dependency each : wanted) {
      if (each instanceof WriteId write) {
        writes.add(write);
      } else if (each instanceof Promise promise) {
        promises.add(promise);
      }
    }
    if (promises.isEmpty()) {
      return open.observe(writes, left(deadline));
    }
    Observation records = open.promised(promises, left(deadline));
    if (writes.isEmpty()) {
      return records;
    }
    Observation shown = open.observe(writes, left(deadline));
    if (!shown.server().equals(records.server())) {
      throw new UnreachableException("the server's history changed during the poll");
    }
    return records.with(shown);
  }

  private Duration left(long deadline) {
    Duration left = Duration.ofNanos(deadline - clock.nanoTime());
    return left.compareTo(LEAST_LOOK) > 0 ? left : LEAST_LOOK;
  }

  private void dropEndpoint() {
    Endpoint open = endpoint;
    endpoint = null;
    knowledge.forget();
    if (open != null) {
      try {
        open.close();
      } catch (RuntimeException error) { // It is given up either way.
        Counts.LOG.log(Level.FINE, error, () -> "closing an endpoint failed");
      }
    }
  }

  @Override
  public void pause(Duration timeout) {
    if (timeout.isZero()) {
      return;
    }
    using.lock();
    try {
      Endpoint open = endpoint;
      if (open == null) {
        wake.await(timeout);
      } else {
        open.pause(timeout, wake);
      }
    } catch (Exception error) { // The next poll connects again and reports.
      dropEndpoint();
    } finally {
      using.unlock();
    }
  }

  /** Informs the endpoint that nobody waits, unless somebody came meanwhile. */
  private void rest() {
    using.lock();
    try {
      if (isClosed) {
        dropEndpoint();
      }
      Endpoint open = endpoint;
      if (open != null && !isWatching()) {
        open.rest();
      }
    } catch (Exception error) { // The next poll connects again and reports.
      dropEndpoint();
    } finally {
      using.unlock();
    }
  }

  /** Fails whoever waits, ends the thread and releases the connection; may be called again. */
  void close() {
    List<Subscriber> left;
    Thread running;
    synchronized (this) {
      isClosed = true;
      left = subscribers.all();
      subscribers = new Subscribers();
      running = thread;
      thread = null;
    }
    wake.set();
    Endpoint open = endpoint;
    if (open != null) {
      open.interrupt();
    }
    left.forEach(each -> each.failed(shim.datastore(), CLOSED));
    if (running != null && running != Thread.currentThread()) {
      boolean ended = joined(running);
      if (!ended) {
        return; // It is making a connection, which it releases itself.
      }
    }
    using.lock();
    try {
      dropEndpoint();
    } finally {
      using.unlock();
    }
  }

  private static boolean joined(Thread running) {
    try {
      running.join(2 * LOOK.toMillis());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    return !running.isAlive();
  }

  /** Returns the cause that an outcome gives. */
  static String why(Throwable error) {
    String message = error.getMessage();
    return message == null || message.isEmpty() ? error.getClass().getSimpleName() : message;
  }
}
