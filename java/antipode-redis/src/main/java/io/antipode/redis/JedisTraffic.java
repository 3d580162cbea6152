package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.UnmetException;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.redis.Commands.Kind;
import io.antipode.redis.InstrumentedConnection.Answer;
import io.antipode.request.Recording;
import io.opentelemetry.context.Context;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.args.Rawable;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;

/**
 * What goes over one connection of Jedis: the application's commands, and questions next to them in
 * the same packet. One thread uses it at a time. A read under a floor is made where it is sent, and
 * its reply kept until it is asked for.
 */
final class JedisTraffic {
  /** How many words decide what a command does. */
  private static final int WORDS = 4;

  private final RedisShim shim;
  private final InstrumentedConnection wire;
  private final String process;
  private final @Nullable JedisException refusal;

  /** Of its pool. */
  private final Places places;

  /** The replies that are to come. A subscriber's other threads send, too. */
  private final Queue<Awaited> awaited = new ConcurrentLinkedQueue<>();

  /** Replies that came before the application asks for them. */
  private final Deque<Answer> ready = new ArrayDeque<>();

  private @Nullable Transaction transaction;
  private int losses;

  /** A question where the server stands, and what it said. */
  private static final class Question {
    @Nullable ServerState state;
  }

  /** A transaction that was begun. */
  private static final class Transaction {
    final Question before = new Question();
    final List<Kind> kinds = new ArrayList<>();

    /** What was waited for before it. */
    final Set<Dependency> shown = new HashSet<>();

    /** Counts its reads once they are answered, if they may be stale. */
    final StaleRead stale = new StaleRead();

    /** Why its reads may not be answered; null where they may. */
    @Nullable RuntimeException failure;
  }

  /** What may have been a write, alone or in a transaction. */
  private record Sent(
      List<Kind> kinds,
      boolean isTransaction,
      String name,
      Context context,
      @Nullable Question before,
      @Nullable Question after) {
    Kind done(Answer answer) {
      if (!isTransaction) {
        return Effects.of(kinds.get(0), message(answer));
      }
      return Effects.ofAll(kinds, answers(answer.value()));
    }
  }

  /** Returns what the commands of a transaction answered; null where it was aborted. */
  static @Nullable List<?> answers(@Nullable Object ofExec) {
    return ofExec instanceof List<?> all ? all : null;
  }

  /**
   * A reply to a question, or to a command of the application's.
   *
   * @param stale counts what it reads once it is answered; null where it reads nothing
   */
  private record Awaited(
      @Nullable Question question, @Nullable Sent sent, @Nullable StaleRead stale) {}

  /** The replies to a read in the packet of a poll. */
  private record Reading(Answer info, List<@Nullable String> records, Answer reply) {}

  /**
   * Makes what sends by a connection.
   *
   * @param process the name of the server's process; empty where it is not known
   * @param refusal why {@code INFO} may not ride along; null where it may
   */
  JedisTraffic(
      RedisShim shim,
      InstrumentedConnection wire,
      String process,
      @Nullable JedisException refusal,
      Places places) {
    this.shim = shim;
    this.places = places;
    this.wire = wire;
    this.process = process;
    this.refusal = refusal;
  }

  private static @Nullable String message(Answer answer) {
    return answer.error() == null ? null : String.valueOf(answer.error().getMessage());
  }

  private static @Nullable ServerState state(Answer info) {
    String text = info.text();
    return text == null ? null : ServerState.parse(text);
  }

  static List<String> words(CommandArguments args) {
    List<String> words = new ArrayList<>();
    words.add(SafeEncoder.encode(args.getCommand().getRaw()));
    if (Commands.isDecidedByWords(words.get(0))) {
      Iterator<Rawable> rest = args.iterator();
      rest.next(); // The name itself.
      while (rest.hasNext() && words.size() < WORDS) {
        words.add(SafeEncoder.encode(rest.next().getRaw()));
      }
    }
    return words;
  }

  // Sending.

  /** Sends a command; under a floor once it may be. */
  void send(CommandArguments args) {
    List<String> words = words(args);
    String name = words.get(0).toUpperCase(Locale.ROOT);
    Kind kind = Commands.kind(words);
    if (transaction != null) {
      sendQueued(transaction, args, name, kind);
      return;
    }
    if (name.equals("MULTI")) {
      begin(args);
      return;
    }
    StaleRead stale = new StaleRead();
    @Nullable Floor floor =
        kind.reads()
            ? Floor.currentAhead(shim, stale)
            : kind == Kind.UNKNOWN ? Floor.currentAgain(shim, stale) : null;
    if (floor != null && kind == Kind.READ && refusal == null) {
      ready.add(read(floor, args, stale));
      return;
    }
    if (floor != null) {
      hold(floor);
    }
    boolean asks = kind.mayWrite() && refusal == null;
    Question before = asks && kind == Kind.UNKNOWN ? new Question() : null;
    if (before != null) {
      ask(before);
    }
    sendOne(args, kind.mayWrite() ? sent(List.of(kind), false, name, before) : null, stale);
  }

  private Sent sent(
      List<Kind> kinds, boolean isTransaction, String name, @Nullable Question before) {
    Question after = refusal == null ? new Question() : null;
    return new Sent(kinds, isTransaction, name, Context.current(), before, after);
  }

  private void sendOne(CommandArguments args, @Nullable Sent sent, @Nullable StaleRead stale) {
    wire.connect(); // Where that fails nothing was sent.
    awaited.add(new Awaited(null, sent, stale));
    wire.send(args);
    if (sent != null && sent.after != null) {
      ask(sent.after);
    }
  }

  private void ask(Question question) {
    wire.connect();
    awaited.add(new Awaited(question, null, null));
    wire.send(info());
  }

  private static CommandArguments info() {
    return new CommandArguments(Command.INFO).add(Look.SECTION);
  }

  // Transactions.

  /**
   * Begins a transaction: what may write in it is asked before it. Where its reads may not be
   * answered, its end says so: a client that got no transaction would not give its connection back.
   */
  private void begin(CommandArguments args) {
    Transaction begun = new Transaction();
    try {
      Floor floor = Floor.currentAgain(shim, begun.stale);
      if (floor != null) {
        hold(floor);
        begun.shown.addAll(Questions.demanded(floor));
      }
    } catch (UnmetException | JedisException error) {
      begun.failure = error;
    }
    if (begun.failure == null || !wire.isBroken()) {
      if (refusal == null) {
        ask(begun.before);
      }
      sendOne(args, null, null);
    }
    transaction = begun;
  }

  private void sendQueued(Transaction running, CommandArguments args, String name, Kind kind) {
    if (wire.isBroken()) {
      throw new JedisConnectionException(
          "the connection was lost before its transaction", running.failure);
    }
    switch (name) {
      case "EXEC" -> {
        if (running.failure != null) {
          discard(running.failure);
        }
        transaction = null;
        boolean mayWrite = Commands.mayWrite(running.kinds);
        sendOne(
            args, mayWrite ? sent(running.kinds, true, name, running.before) : null, running.stale);
      }
      case "DISCARD" -> {
        transaction = null;
        sendOne(args, null, null);
      }
      default -> {
        if (kind.reads() && running.failure == null) {
          checkShown(running);
        }
        running.kinds.add(kind);
        sendOne(args, null, null);
      }
    }
  }

  private void checkShown(Transaction running) {
    try {
      Floor floor = Floor.currentAgain(shim, running.stale);
      if (floor != null) {
        Questions.requireShown(floor, running.shown);
      }
    } catch (UnmetException error) {
      running.failure = error;
    }
  }

  private void discard(RuntimeException failure) {
    drain();
    transaction = null;
    wire.send(new CommandArguments(Command.DISCARD));
    wire.sendAll();
    Answer unused = wire.answer();
    throw failure;
  }

  // Replies.

  /** Returns the next reply to a command of the application's. */
  Object reply() {
    Answer first = ready.poll();
    return (first == null ? next() : first).handedOver();
  }

  private Answer next() {
    Awaited head = awaited.peek();
    while (head != null && head.question != null) {
      head.question.state = state(wire.answer());
      awaited.remove(head);
      head = awaited.peek();
    }
    Answer answer = wire.answer();
    if (head != null) {
      awaited.remove(head);
      if (head.stale != null) {
        count(head.stale, answer);
      }
      if (head.sent != null) {
        take(head.sent, answer);
      }
    }
    return answer;
  }

  /** Counts what may be stale, if this answers it. */
  private static void count(StaleRead stale, Answer answer) {
    if (answer.error() == null) {
      stale.answered();
    }
  }

  /** Takes a reply to what may have been a write, with the position after it. */
  private void take(Sent sent, Answer answer) {
    Question after = sent.after;
    if (after != null) {
      awaited.poll();
      try {
        after.state = state(wire.answer());
      } catch (JedisConnectionException lost) {
        // The write was answered: it succeeded, without a position.
      }
    }
    ServerState behind = after == null ? null : after.state;
    ServerState first = sent.before == null ? null : sent.before.state;
    Kind done = sent.done(answer);
    sent.context.wrap(() -> shim.enter(done, sent.name, first, behind, refusal)).run();
    if (done != Kind.NEITHER && behind != null) {
      note(behind);
    }
  }

  private void note(ServerState state) {
    if (!awaited.isEmpty() || transaction != null) {
      return; // It goes with a later write.
    }
    Map<String, Long> fields = shim.notes(state);
    if (fields.isEmpty()) {
      return;
    }
    CommandArguments args = new CommandArguments(Command.HSET).add(LogHistory.KEY);
    fields.forEach((log, end) -> args.add(log).add(end));
    try {
      wire.send(args);
      wire.sendAll();
      Answer unused = wire.answer();
    } catch (JedisConnectionException lost) {
      // The write is done; replicas learn of the log from another writer.
    }
  }

  /** Takes in all replies, so that the connection is free for a poll. */
  private void drain() {
    if (!awaited.isEmpty()) {
      wire.sendAll();
    }
    while (!awaited.isEmpty()) {
      ready.add(next());
    }
  }

  /** Forgets what will not be answered any more; of what may have been written nobody knows. */
  void lost() {
    losses++;
    transaction = null;
    for (Awaited each = awaited.poll(); each != null; each = awaited.poll()) {
      if (each.sent != null) {
        each.sent.context.wrap(() -> Recording.markIncomplete(shim.datastore(), "in_doubt")).run();
      }
    }
  }

  /** Begins again: nothing that was asked for before is answered here. */
  void connected() {
    lost();
    ready.clear();
  }

  // Reads under a floor.

  private Answer read(Floor floor, CommandArguments args, StaleRead stale) {
    wire.connect();
    drain();
    try {
      Reading reading = readOnce(floor, args);
      boolean isFinal = false;
      while (!accepts(floor, reading, isFinal)) {
        hold(floor);
        reading = readOnce(floor, args);
        isFinal = true;
      }
      count(stale, reading.reply);
      return reading.reply;
    } catch (UnreachableException error) {
      throw new JedisConnectionException(error.getMessage(), error);
    }
  }

  private Reading readOnce(Floor floor, CommandArguments args) {
    List<Promise> promises = floor.promises();
    try {
      return wire.within(
          floor.pollTimeout(),
          () -> {
            wire.send(info());
            if (!promises.isEmpty()) {
              wire.send(records(promises));
            }
            wire.send(args);
            wire.sendAll();
            Answer info = wire.answer();
            List<@Nullable String> found = promises.isEmpty() ? List.of() : wire.answer().texts();
            return new Reading(info, found, wire.answer());
          });
    } catch (JedisConnectionException error) {
      floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      throw error;
    }
  }

  private CommandArguments records(List<Promise> promises) {
    return new CommandArguments(Command.MGET)
        .addObjects((Object[]) Look.recordKeys(promises, shim.prefix()));
  }

  private boolean accepts(Floor floor, Reading reading, boolean isFinal) {
    ServerState state = state(reading.info);
    if (state == null) {
      return floor.accepts(Questions.refused(floor, message(reading.info)));
    }
    List<WriteId> writes = floor.writes();
    Observation shown = observation(state, floor, reading.records);
    return (isFinal || Positions.unknownLogs(shown, writes).isEmpty()) && floor.accepts(shown);
  }

  private Observation observation(ServerState state, Floor floor, List<@Nullable String> records) {
    String incarnation = losses == 0 || process.isEmpty() ? process : process + "+" + losses;
    return Positions.observation(
        state, incarnation, floor.writes(), shim.history(), floor.promises(), records);
  }

  /** Waits until this connection shows a floor. */
  private void hold(Floor floor) {
    wire.connect();
    drain();
    try {
      floor.hold(shim, places, most -> look(floor, most));
    } catch (UnreachableException error) {
      throw new JedisConnectionException(error.getMessage(), error);
    } catch (RuntimeException error) {
      throw error;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new JedisException("interrupted while a read waited", error);
    } catch (Exception error) {
      throw new JedisException(error);
    }
    if (wire.isBroken() || !wire.isConnected()) {
      throw new JedisConnectionException("the connection was lost while a read waited");
    }
  }

  /** Polls once, where nothing was sent; null where that fails, as the read then does. */
  @Nullable Observation lookFirst(Floor floor) {
    try {
      wire.connect();
      return look(floor, floor.pollTimeout());
    } catch (JedisException | UnreachableException error) {
      return null;
    }
  }

  /** Polls on this connection, for all that decides it, at one moment of one history. */
  private Observation look(Floor floor, Duration most) {
    if (refusal != null) {
      return Questions.refused(floor, String.valueOf(refusal.getMessage()));
    }
    List<String> logs = floor.writes().stream().map(WriteId::key).distinct().toList();
    try {
      return wire.within(most, () -> look(floor, logs));
    } catch (JedisConnectionException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  private Observation look(Floor floor, List<String> logs) {
    List<Promise> promises = floor.promises();
    wire.send(info());
    if (!promises.isEmpty()) {
      wire.send(records(promises));
    }
    if (!logs.isEmpty()) {
      wire.send(new CommandArguments(Command.HMGET).add(LogHistory.KEY).addObjects(logs));
    }
    wire.send(info());
    wire.sendAll();
    Answer info = wire.answer();
    List<@Nullable String> found = promises.isEmpty() ? List.of() : wire.answer().texts();
    List<@Nullable String> ends = logs.isEmpty() ? List.of() : wire.answer().texts();
    Answer then = wire.answer();
    ServerState state = state(info);
    ServerState after = state(then);
    if (state == null || after == null) {
      return Questions.refused(floor, message(state == null ? info : then));
    }
    if (!after.log().equals(state.log())) {
      return Observation.of("").build();
    }
    if (ends.size() == logs.size()) {
      shim.history().learn(state.log(), logs, ends);
    }
    return Positions.patient(observation(state, floor, found), floor.writes());
  }
}
