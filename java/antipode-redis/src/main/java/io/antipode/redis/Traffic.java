package io.antipode.redis;

import io.antipode.OnStale;
import io.antipode.Settings;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Moved;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.UnmetException;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.redis.Commands.Kind;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisException;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.opentelemetry.context.Context;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What goes over one connection of the application's: its commands, and questions next to them in
 * the same packet. Nothing blocks. While a read is held back, what the same request sends after it
 * waits; while it may be sent again, the later reads of that request are sent, and its other
 * commands wait. The commands of other requests pass, but for those that change the connection
 * itself: these wait for every read before them, and every command after them waits for them.
 */
final class Traffic<K, V> {
  /** Whose commands keep no order among those of requests: they have no scope. */
  private static final Object NO_REQUEST = new Object();

  /** Whose cursors are of one server: the other one would leave elements out. */
  private static final Set<String> SCANS = Set.of("SCAN", "SSCAN", "HSCAN", "ZSCAN");

  /** How many words decide what a command does. */
  private static final int WORDS = 4;

  private final RedisShim shim;
  private final StatefulRedisConnectionImpl<K, V> real;
  private final String process;
  private final @Nullable RedisException refusal;

  /** Of the pool that lends the connection; null for none that is known. */
  private final @Nullable Places places;

  /** How often the connection was lost: answers from before and after do not belong together. */
  private final AtomicInteger losses = new AtomicInteger();

  private final Set<Object> held = ConcurrentHashMap.newKeySet();

  // Under the lock of this object.
  /** What waits to be sent, in the order in which it came. */
  private final List<Sending<?>> waiting = new ArrayList<>();

  /** The reads of each request that are not over yet. */
  private final Map<Object, Reads> reads = new HashMap<>();

  private @Nullable Transaction transaction;

  /** Whether keys are watched, and whether another database was selected: reads belong here. */
  private volatile boolean isWatching;

  private volatile boolean hasSelected;

  /**
   * Makes what sends by a connection.
   *
   * @param process the name of the server's process; empty where it is not known
   * @param refusal why {@code INFO} may not ride along; null where it may
   * @param places of the pool that lends the connection; null for none that is known
   */
  Traffic(
      RedisShim shim,
      StatefulRedisConnectionImpl<K, V> real,
      String process,
      @Nullable RedisException refusal,
      @Nullable Places places) {
    this.places = places;
    this.shim = shim;
    this.real = real;
    this.process = process;
    this.refusal = refusal;
    real.addListener(
        new RedisConnectionStateListener() {
          @Override
          public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
            losses.incrementAndGet();
          }
        });
  }

  private String incarnation() {
    int lost = losses.get();
    return lost == 0 || process.isEmpty() ? process : process + "+" + lost;
  }

  RedisShim shim() {
    return shim;
  }

  /** Returns whether a command is held back. */
  boolean isHeld(Object command) {
    return held.contains(command);
  }

  /** Sends a command; returns the one by which its end is known. */
  RedisCommand<K, V, ?> dispatch(RedisCommand<K, V, ?> command) {
    Kind kind = Commands.kind(words(command));
    Context context = Context.current();
    @Nullable Floor floor = null;
    StaleRead stale = new StaleRead();
    String name = name(command);
    boolean isBegin = name.equals("MULTI");
    noteBinding(name);
    try {
      if (real.isMulti()) {
        floor = kind.reads() ? Floor.currentAgain(shim, stale) : null;
      } else if (kind.reads() || kind == Kind.UNKNOWN || isBegin) {
        floor = kind.reads() ? Floor.currentAhead(shim, stale) : Floor.currentAgain(shim, stale);
      }
    } catch (UnmetException error) {
      if (!endsTransaction(error)) {
        end(command, kind, context, error);
        return command;
      }
    }
    UnmetException cause = floor == null ? null : staysFor(kind, name);
    if (cause != null) {
      end(command, kind, context, cause);
      return command;
    }
    Sending<?> sending = new Sending<>(command, kind, floor, stale, context);
    synchronized (this) {
      if (!real.isMulti() && !mayPass(sending, waiting)) {
        waiting.add(sending);
        return command;
      }
      return sending.send();
    }
  }

  /** Notes what binds later reads to this connection. */
  private void noteBinding(String name) {
    switch (name) {
      case "WATCH" -> isWatching = true;
      case "EXEC", "DISCARD", "UNWATCH", "RESET" -> isWatching = false;
      case "SELECT" -> hasSelected = true;
      default -> {}
    }
  }

  /** Returns why a read of a request that was moved to the primary is made there, or null. */
  private @Nullable UnmetException staysFor(Kind kind, String name) {
    boolean isReplica = shim.readsFrom() == ReadsFrom.REPLICA;
    boolean mayMove = isReplica && isMovable(kind, name) && shim.primary() != null;
    boolean isWanted = Settings.current().onStale() == OnStale.PRIMARY;
    return mayMove && isWanted ? Moved.cause(Scope.currentOrNull(), shim.datastore()) : null;
  }

  private boolean isMovable(Kind kind, String name) {
    boolean isBound = isWatching || hasSelected || real.isMulti();
    return kind == Kind.READ && !isBound && !SCANS.contains(name);
  }

  /** Ends a command that is not sent: with an error, or at the primary, if it may be made there. */
  private void end(RedisCommand<K, V, ?> command, Kind kind, Context context, Throwable error) {
    Supplier<? extends StatefulRedisConnection<?, ?>> primary = shim.primary();
    if (primary == null
        || !isMovable(kind, name(command))
        || !(error instanceof UnmetException unmet && unmet.isForPrimary())) {
      command.completeExceptionally(error);
      return;
    }
    Counts.count("reads_at_primary", shim.datastore());
    Moved.move(Scope.fromContextOrNull(context), shim.datastore(), unmet);
    // It may have to connect, which no thread of the client's may wait for.
    CompletableFuture<Void> unused =
        CompletableFuture.runAsync(
            context.wrap(
                () -> {
                  try {
                    send(primary.get(), command);
                  } catch (RuntimeException failed) {
                    failed.addSuppressed(error);
                    command.completeExceptionally(failed);
                  }
                }));
  }

  /** Sends by a connection that may be of other types: a command encodes and decodes by itself. */
  @SuppressWarnings("unchecked")
  private static <K, V> void send(StatefulRedisConnection<?, ?> by, RedisCommand<K, V, ?> command) {
    Object unused = ((StatefulRedisConnection<K, V>) by).dispatch(command);
  }

  /** The reads of one request on this connection. */
  private static final class Reads {
    int held;

    /** How many were sent of which it is not known yet whether they are sent again. */
    int unjudged;

    boolean areOver() {
      return held == 0 && unjudged == 0;
    }
  }

  /**
   * Returns whether a command may be sent before those that wait. A read that is sent again must
   * show its request what it would have shown at its place: of that request only other reads may
   * have been sent since.
   */
  private boolean mayPass(Sending<?> sending, List<Sending<?>> before) {
    if (sending.changesConnection) {
      return before.isEmpty() && reads.isEmpty();
    }
    for (Sending<?> earlier : before) {
      if (earlier.changesConnection || earlier.request == sending.request) {
        return false;
      }
    }
    Reads own = reads.get(sending.request);
    return own == null || (own.held == 0 && sending.kind == Kind.READ);
  }

  /** Sends what waits and may be sent now. The application may have flushed before that. */
  private void release() {
    for (Sending<?> next = next(); next != null; next = next()) {
      next.sendLater();
    }
    real.flushCommands();
  }

  private @Nullable Sending<?> next() {
    for (int at = 0; at < waiting.size(); at++) {
      if (mayPass(waiting.get(at), waiting.subList(0, at))) {
        return waiting.remove(at);
      }
    }
    return null;
  }

  private Reads readsOf(Object request) {
    return reads.computeIfAbsent(request, unused -> new Reads());
  }

  private void over(Object request) {
    reads.computeIfPresent(request, (unused, own) -> own.areOver() ? null : own);
    if (!waiting.isEmpty()) {
      release();
    }
  }

  private synchronized void judged(Object request) {
    readsOf(request).unjudged--;
    over(request);
  }

  /** Lets the transaction that runs end with an error, if there is one: its replies are its own. */
  private synchronized boolean endsTransaction(UnmetException error) {
    if (transaction == null || !real.isMulti()) {
      return false;
    }
    transaction.failure = error;
    return true;
  }

  private static String name(RedisCommand<?, ?, ?> command) {
    return new String(command.getType().getBytes(), StandardCharsets.US_ASCII);
  }

  /** Returns what the commands of a transaction answered; null where it was aborted. */
  static @Nullable List<?> answers(@Nullable Object ofExec) {
    return ofExec instanceof TransactionResult all && !all.wasDiscarded()
        ? all.stream().toList()
        : null;
  }

  private static List<String> words(RedisCommand<?, ?, ?> command) {
    List<String> words = new ArrayList<>(List.of(name(command)));
    if (command.getArgs() == null || !Commands.isDecidedByWords(words.get(0))) {
      return words;
    }
    ByteBuf packed = Unpooled.buffer();
    command.getArgs().encode(packed);
    while (packed.isReadable() && words.size() < WORDS) {
      int end = packed.bytesBefore((byte) '\r');
      String length = packed.readCharSequence(end, StandardCharsets.US_ASCII).toString();
      packed.skipBytes(2);
      int size = Integer.parseInt(length.substring(1));
      words.add(packed.readCharSequence(size, StandardCharsets.ISO_8859_1).toString());
      packed.skipBytes(2);
    }
    return words;
  }

  // One command.

  private final class Sending<T> {
    private final RedisCommand<K, V, T> command;
    private final Kind kind;
    private final @Nullable Floor floor;

    /** Counts it once it is answered, if it may be stale. */
    private final StaleRead stale;

    private final Context context;

    /** The line that made it, if somebody asks what wrote; another thread takes the reply. */
    private final @Nullable StackTraceElement site;

    /** Whose order it keeps. */
    private final Object request;

    private final boolean changesConnection;

    Sending(
        RedisCommand<K, V, T> command,
        Kind kind,
        @Nullable Floor floor,
        StaleRead stale,
        Context context) {
      this.command = command;
      this.kind = kind;
      this.floor = floor;
      this.stale = stale;
      this.context = context;
      this.site = kind.mayWrite() || kind == Kind.QUEUES ? Recording.callSite() : null;
      Scope scope = Scope.fromContextOrNull(context);
      this.request = scope == null ? NO_REQUEST : scope.request();
      this.changesConnection = Commands.mayChangeConnection(name(command), kind);
    }

    void sendLater() {
      try {
        RedisCommand<K, V, ?> unused = send();
      } catch (RuntimeException error) {
        command.completeExceptionally(error);
      }
    }

    RedisCommand<K, V, ?> send() {
      Transaction running = transaction;
      if (kind == Kind.QUEUES) {
        return sendEnd(running);
      }
      if (running != null && real.isMulti()) {
        if (floor != null && kind.reads()) {
          running.require(floor, stale);
        }
        running.kinds.add(kind);
        RedisCommand<K, V, T> unused = real.dispatch(running.queued(command));
        return command;
      }
      if (floor != null && kind == Kind.READ && refusal == null) {
        read(floor, false);
        return command;
      }
      if (floor != null) {
        hold(floor, this, this::sendNow);
        return command;
      }
      return kind.mayWrite() || stale.isServed()
          ? ride(new Delayed<>(this, null))
          : real.dispatch(command);
    }

    private void sendNow() {
      if (name(command).equals("MULTI")) {
        begin();
      } else {
        RedisCommand<K, V, ?> unused = ride(new Delayed<>(this, null));
      }
    }

    private RedisCommand<K, V, ?> sendEnd(@Nullable Transaction running) {
      String name = name(command);
      if (name.equals("MULTI")) {
        if (floor != null) {
          hold(floor, this, this::begin);
        } else {
          begin();
        }
        return command;
      }
      transaction = null;
      if (running != null && running.failure != null && name.equals("EXEC")) {
        RedisCommand<K, V, String> unused =
            real.dispatch(
                new Command<K, V, String>(
                    CommandType.DISCARD, new StatusOutput<>(real.getCodec())));
        running.end();
        command.completeExceptionally(running.failure);
        return command;
      }
      return running == null || name.equals("DISCARD")
          ? real.dispatch(command)
          : ride(new Delayed<>(this, running));
    }

    /** Begins a transaction: what may write in it is asked before it. */
    private void begin() {
      Transaction begun = new Transaction(floor, stale);
      transaction = begun;
      if (refusal != null) {
        RedisCommand<K, V, T> unused = real.dispatch(command);
      } else {
        packet(List.of(Questions.of(begun.before), command));
      }
    }

    /** Sends with the questions before and after it. */
    private RedisCommand<K, V, ?> ride(Delayed<T> delayed) {
      if (refusal != null || delayed.after == null) {
        RedisCommand<K, V, T> unused = real.dispatch((RedisCommand<K, V, T>) delayed);
        return command;
      }
      RedisCommand<K, V, ?> after = Questions.of(delayed.after);
      if (delayed.before != null && delayed.transaction == null) {
        packet(List.of(Questions.of(delayed.before), delayed, after));
      } else {
        packet(List.of(delayed, after));
      }
      return command;
    }

    /** Reads in the packet of a poll; the reply is shown where the poll allows it. */
    private void read(Floor demanded, boolean isFinal) {
      int lost = losses.get();
      List<Promise> promises = demanded.promises();
      AsyncCommand<byte[], byte[], String> info = Questions.info();
      AsyncCommand<byte[], byte[], List<KeyValue<byte[], byte[]>>> records =
          Questions.records(promises, shim.prefix());
      Recorded<K, V> reply = new Recorded<>(real.getCodec());
      AsyncCommand<K, V, Boolean> copy =
          new AsyncCommand<>(new Command<>(command.getType(), reply, command.getArgs()));
      held.add(command);
      if (promises.isEmpty()) {
        packet(List.of(Questions.of(info), copy));
      } else {
        packet(List.of(Questions.of(info), Questions.of(records), copy));
      }
      readsOf(request).unjudged++;
      CompletableFuture<Boolean> unused =
          copy.orTimeout(demanded.pollTimeout().toNanos(), TimeUnit.NANOSECONDS)
              .whenComplete(
                  (answer, error) -> {
                    try {
                      if (error != null && !(error instanceof RedisCommandExecutionException)) {
                        copy.cancel(true);
                        fail(expired(demanded, error));
                      } else if (lost == losses.get()
                          && accepts(demanded, info, values(records), isFinal)) {
                        show(reply);
                      } else {
                        again(demanded);
                      }
                    } catch (RuntimeException failed) {
                      fail(failed);
                    } finally {
                      judged(request);
                    }
                  });
    }

    private void again(Floor demanded) {
      synchronized (Traffic.this) {
        hold(demanded, this, () -> read(demanded, true));
      }
    }

    private void show(Recorded<K, V> reply) {
      held.remove(command);
      CommandOutput<K, V, T> output = command.getOutput();
      reply.replay(output);
      if (output == null || !output.hasError()) {
        stale.answered();
      }
      command.complete();
    }

    private void fail(Throwable error) {
      held.remove(command);
      end(command, kind, context, error);
    }
  }

  private static Throwable expired(Floor floor, Throwable error) {
    try {
      floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      return error;
    } catch (UnmetException unmet) {
      return unmet;
    }
  }

  private void note(Map<String, Long> fields) {
    if (!fields.isEmpty()) {
      packet(List.of(Questions.of(Questions.note(fields))));
    }
  }

  private void packet(List<RedisCommand<K, V, ?>> commands) {
    Object unused = real.dispatch(commands);
  }

  // Polls.

  private boolean accepts(
      Floor floor,
      AsyncCommand<byte[], byte[], String> info,
      List<@Nullable String> records,
      boolean isFinal) {
    ServerState state = Questions.state(info);
    if (state == null) {
      return floor.accepts(Questions.refused(floor, error(info)));
    }
    List<WriteId> writes = floor.writes();
    Observation shown =
        Positions.observation(
            state, incarnation(), writes, shim.history(), floor.promises(), records);
    return (isFinal || Positions.unknownLogs(shown, writes).isEmpty()) && floor.accepts(shown);
  }

  private static @Nullable Throwable error(CompletableFuture<?> answer) {
    return answer.isCompletedExceptionally() ? answer.handle((value, error) -> error).join() : null;
  }

  private static List<@Nullable String> values(
      CompletableFuture<List<KeyValue<byte[], byte[]>>> answer) {
    return answer.isDone() && !answer.isCompletedExceptionally()
        ? Link.texts(answer.join())
        : List.of();
  }

  /** Polls on this connection, for all that decides it, at one moment of one history. */
  private CompletableFuture<Observation> look(Floor floor) {
    if (real.isMulti()) { // A question now would be one of the transaction.
      return CompletableFuture.completedFuture(Observation.of("").build());
    }
    if (refusal != null) {
      return CompletableFuture.completedFuture(Questions.refused(floor, refusal));
    }
    List<WriteId> writes = floor.writes();
    List<Promise> promises = floor.promises();
    List<String> logs = writes.stream().map(WriteId::key).distinct().toList();
    AsyncCommand<byte[], byte[], String> info = Questions.info();
    AsyncCommand<byte[], byte[], List<KeyValue<byte[], byte[]>>> records =
        Questions.records(promises, shim.prefix());
    AsyncCommand<byte[], byte[], List<KeyValue<byte[], byte[]>>> ends = Questions.ends(logs);
    AsyncCommand<byte[], byte[], String> after = Questions.info();
    List<RedisCommand<K, V, ?>> packet = new ArrayList<>(List.of(Questions.of(info)));
    if (!promises.isEmpty()) {
      packet.add(Questions.of(records));
    }
    if (!logs.isEmpty()) {
      packet.add(Questions.of(ends));
    }
    packet.add(Questions.of(after));
    Object unused = real.dispatch(packet);
    real.flushCommands();
    int lost = losses.get();
    return after.handle(
        (answer, error) -> {
          ServerState state = Questions.state(info);
          ServerState then = Questions.state(after);
          if (state == null || then == null) {
            return Questions.refused(floor, error(info) == null ? error : error(info));
          }
          if (!then.log().equals(state.log()) || lost != losses.get()) {
            return Observation.of("").build();
          }
          List<@Nullable String> found = values(ends);
          if (found.size() == logs.size()) {
            shim.history().learn(state.log(), logs, found);
          }
          Observation shown =
              Positions.observation(
                  state, incarnation(), writes, shim.history(), promises, values(records));
          return Positions.patient(shown, writes);
        });
  }

  // Holding back.

  private synchronized void hold(Floor floor, Sending<?> sending, Runnable then) {
    readsOf(sending.request).held++;
    held.add(sending.command);
    new Held(shim, floor, places, this::look, real.getResources().eventExecutorGroup())
        .start(
            error -> {
              synchronized (this) {
                readsOf(sending.request).held--;
                end(sending, error, then);
                over(sending.request);
                real.flushCommands();
              }
            });
  }

  private void end(Sending<?> sending, @Nullable Throwable error, Runnable then) {
    if (error != null) {
      sending.fail(error);
      return;
    }
    held.remove(sending.command);
    try {
      then.run();
    } catch (RuntimeException failed) {
      sending.command.completeExceptionally(failed);
    }
  }

  // Writes and transactions.

  /** A transaction that was begun on this connection. */
  private final class Transaction {
    final AsyncCommand<byte[], byte[], String> before = Questions.info();
    final List<Kind> kinds = new ArrayList<>();
    final int lost = losses.get();
    final boolean isGuarded;

    /** What was waited for before it. */
    private final List<Dependency> shown;

    /** Why its reads may not be answered; null where they may. */
    @Nullable UnmetException failure;

    /** Count its reads once they are answered, if they may be stale. */
    private final List<StaleRead> stale = new ArrayList<>();

    private final List<Runnable> answered = new ArrayList<>();
    private boolean isOver;

    Transaction(@Nullable Floor floor, StaleRead stale) {
      this.stale.add(stale);
      this.isGuarded = floor != null;
      this.shown = floor == null ? List.of() : Questions.demanded(floor);
    }

    void require(Floor floor, StaleRead read) {
      stale.add(read);
      try {
        Questions.requireShown(floor, shown);
      } catch (UnmetException error) {
        failure = error;
      }
    }

    /** Returns a command of it, which is complete once the whole has been taken in. */
    <T> RedisCommand<K, V, T> queued(RedisCommand<K, V, T> command) {
      return new CommandWrapper<>(command) {
        @Override
        public void complete() {
          then(super::complete);
        }
      };
    }

    private synchronized void then(Runnable completion) {
      if (isOver) {
        completion.run();
      } else {
        answered.add(completion);
      }
    }

    synchronized void end() {
      isOver = true;
      answered.forEach(Runnable::run);
      answered.clear();
    }
  }

  /** A command of the application's that is complete once what it did has entered its scope. */
  private final class Delayed<T> extends CommandWrapper<K, V, T> {
    final @Nullable AsyncCommand<byte[], byte[], String> before;
    final @Nullable AsyncCommand<byte[], byte[], String> after;
    final @Nullable Transaction transaction;
    private final Kind kind;
    private final Context context;
    private final List<StaleRead> stale;
    private final @Nullable StackTraceElement site;
    private final boolean isGuarded;
    private final int lost;
    private final AtomicInteger left;
    private final AtomicBoolean isSettled = new AtomicBoolean();

    Delayed(Sending<T> sending, @Nullable Transaction transaction) {
      super(sending.command);
      this.transaction = transaction;
      this.kind = sending.kind;
      this.context = sending.context;
      this.stale = transaction == null ? List.of(sending.stale) : transaction.stale;
      this.site = sending.site;
      boolean mayWrite =
          transaction == null ? kind.mayWrite() : Commands.mayWrite(transaction.kinds);
      boolean asks = mayWrite && refusal == null;
      this.after = asks ? Questions.info() : null;
      this.before =
          transaction != null
              ? transaction.before
              : kind == Kind.UNKNOWN && asks ? Questions.info() : null;
      this.isGuarded = transaction == null ? sending.floor != null : transaction.isGuarded;
      this.lost = transaction == null ? losses.get() : transaction.lost;
      this.left = new AtomicInteger(after == null ? 1 : 2);
      if (after != null) {
        CompletableFuture<String> unused = after.whenComplete((info, error) -> arrived());
      }
      if (command instanceof CompletableFuture<?> future) {
        Object unused =
            future.whenComplete(
                (value, error) -> {
                  if (future.isCancelled()) {
                    lose();
                  }
                });
      }
    }

    @Override
    public void complete() {
      arrived();
    }

    private void arrived() {
      if (left.decrementAndGet() > 0) {
        return;
      }
      settle(this::enter);
      if (isGuarded && lost != losses.get()) {
        super.completeExceptionally(
            new RedisException("the connection was lost while it read under a barrier"));
      } else {
        if (isAnswered()) {
          stale.forEach(StaleRead::answered);
        }
        super.complete();
      }
      if (transaction != null) {
        transaction.end();
      }
    }

    /** Returns whether its reads, if any, are answered: it is no error, and was carried out. */
    private boolean isAnswered() {
      CommandOutput<K, V, T> output = getOutput();
      return output == null
          || (!output.hasError()
              && !(output.get() instanceof TransactionResult all && all.wasDiscarded()));
    }

    @Override
    public boolean completeExceptionally(Throwable error) {
      lose();
      return super.completeExceptionally(error);
    }

    @Override
    public void cancel() {
      lose();
      super.cancel();
    }

    private void lose() {
      settle(
          () -> {
            if (transaction == null ? kind.mayWrite() : Commands.mayWrite(transaction.kinds)) {
              Recording.markIncomplete(shim.datastore(), "in_doubt");
            }
          });
      if (transaction != null) {
        transaction.end();
      }
    }

    private void settle(Runnable how) {
      if (isSettled.compareAndSet(false, true)) {
        CallSite.handle(site, context.wrap(how));
      }
    }

    /** Enters what was done, with the position after it. */
    private void enter() {
      boolean isSame = lost == losses.get();
      ServerState behind = isSame && after != null ? Questions.state(after) : null;
      ServerState first = isSame && before != null ? Questions.state(before) : null;
      Kind done = done();
      if (done != Kind.NEITHER && behind != null) {
        note(shim.notes(behind));
      }
      shim.enter(done, name(command), first, behind, refusal);
    }

    private Kind done() {
      CommandOutput<K, V, T> output = getOutput();
      boolean isRefused = output != null && output.hasError();
      if (transaction == null) {
        return Effects.of(kind, isRefused ? String.valueOf(output.getError()) : null);
      }
      Object answer = isRefused || output == null ? null : output.get();
      return Effects.ofAll(transaction.kinds, answers(answer));
    }
  }
}
