package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Policy;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Who waits at a watcher, in order: against the plain scan, which asks for all and tells all. */
class SubscribersTest {
  private static final String POSTS = "posts";
  private static final Policies RAISING =
      new Policies(true, Policy.RAISE, Policy.RAISE, Duration.ofDays(7), 500_000);
  private static final Policies REPORTING =
      new Policies(true, Policy.REPORT, Policy.RAISE, Duration.ofDays(7), 500_000);

  /** Polls that follow each other at once: enough for all places in turn, and no endless row. */
  private static final int MOST_POLLS = 30;

  private static final int SEEDS = 12;

  /** A clock that stands still. */
  private static final class StillClock implements Clock {
    @Override
    public long nanoTime() {
      return 0;
    }

    @Override
    public Instant now() {
      return Instant.EPOCH;
    }

    @Override
    public @Nullable Thread spawn(Stepper stepper) {
      return null;
    }

    @Override
    public Runnable schedule(Duration delay, Runnable task) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void execute(Runnable task) {
      throw new UnsupportedOperationException();
    }
  }

  /** A barrier that waits at one watcher. */
  private static final class Someone implements Subscriber {
    final Wait wait;

    Someone(Set<Dependency> wanted, Policies policies) {
      wait =
          new Wait(
              Map.of(POSTS, wanted),
              List.of(),
              List.of(),
              policies,
              new StillClock(),
              Duration.ofSeconds(30));
    }

    @Override
    public Set<Dependency> wanted(String datastore) {
      return wait.isFinished() ? Set.of() : wait.asked(datastore);
    }

    @Override
    public void waitedOn(long at) {
      wait.waitOn(at);
    }

    @Override
    public void take(String datastore, Observation observation) {
      wait.record(datastore, observation, 1);
    }

    @Override
    public void unreachable(String datastore, String cause) {
      wait.unreachable(datastore, cause, 1);
    }

    @Override
    public void failed(String datastore, String cause) {
      wait.failed(datastore, cause, 1);
    }

    boolean waits() {
      return !wanted(POSTS).isEmpty();
    }

    Map<String, String> outcomes() {
      Map<String, String> found = new TreeMap<>();
      for (Outcome each : wait.result(1).outcomes()) {
        found.put(each.dependency().toString(), each.status() + " " + each.server());
      }
      return found;
    }
  }

  /** What a server has of one log or key. */
  private static final class Log {
    long position;
    long end = 1_000_000_000;
    boolean isKnown = true;

    Status status(long version) {
      if (!isKnown) {
        return Status.UNKNOWN_LOG;
      }
      if (Long.compareUnsigned(version, end) > 0) {
        return Status.LOST;
      }
      return Long.compareUnsigned(version, position) <= 0 ? Status.VISIBLE : Status.NOT_YET;
    }
  }

  /** What can be polled: logs in order, and things that have none. */
  private static final class Server {
    final Map<String, Log> logs = new TreeMap<>();
    final Map<Dependency, Status> things = new HashMap<>();
    int incarnation = 1;
    boolean isAway;

    Log log(String name) {
      return logs.computeIfAbsent(name, each -> new Log());
    }

    Observation observe(Collection<Dependency> wanted) {
      Observation.Builder shown = Observation.of("server-" + incarnation);
      for (Dependency each : wanted) {
        Status thing = things.getOrDefault(each, Status.NOT_YET);
        if (each instanceof Promise promise) {
          shown.promise(promise, thing);
        } else if (each instanceof WriteId write) {
          boolean isOpaque = write.opaqueVersion() != null;
          shown.write(write, isOpaque ? thing : log(write.key()).status(write.version()));
        }
      }
      return shown.build();
    }
  }

  /** The plain scan. */
  private static final class Plain {
    final List<Someone> waiting = new ArrayList<>();

    void poll(Server server) {
      Set<Dependency> wanted = new HashSet<>();
      waiting.forEach(each -> wanted.addAll(each.wanted(POSTS)));
      if (!wanted.isEmpty()) {
        for (Someone each : waiting) {
          if (server.isAway) {
            each.unreachable(POSTS, "away");
          } else {
            each.take(POSTS, server.observe(wanted));
          }
        }
      }
      waiting.removeIf(each -> !each.waits());
    }
  }

  /** The library's own. */
  private static final class Ordered {
    final Subscribers subscribers = new Subscribers();

    /** All that each poll was for, and how many logs and keys that is. */
    final List<Integer> sizes = new ArrayList<>();

    int mostPlaces;

    void join(Someone someone) {
      subscribers.join(someone, someone.wanted(POSTS), 0);
    }

    /** Makes all polls that follow each other at once. */
    void poll(Server server) {
      boolean isAgain = !subscribers.isEmpty();
      for (int polls = 0; isAgain; polls++) {
        assertThat(polls).isLessThan(MOST_POLLS);
        Set<Dependency> wanted = subscribers.asks();
        sizes.add(wanted.size());
        mostPlaces = Math.max(mostPlaces, places(wanted));
        if (server.isAway) {
          List<Subscribers.Waiting> told = subscribers.failed();
          told.forEach(each -> each.subscriber().unreachable(POSTS, "away"));
          List<Long> unused = subscribers.settle(told, POSTS);
        } else {
          Subscribers.Told told = subscribers.shown(server.observe(wanted), 1);
          for (Subscribers.Tell each : told.whom()) {
            Long left = each.left();
            if (left != null) {
              each.one().subscriber().waitedOn(left);
            }
            each.one().subscriber().take(POSTS, told.observation());
          }
          List<Long> unused = subscribers.settle(told.all(), POSTS);
        }
        isAgain = subscribers.isUnasked() && !subscribers.isEmpty();
      }
    }

    private static int places(Set<Dependency> wanted) {
      Set<Object> found = new HashSet<>();
      for (Dependency each : wanted) {
        found.add(each instanceof WriteId write ? write.key() : each);
      }
      return found.size();
    }
  }

  /** The same barrier, in both. */
  private record Both(Someone plain, Someone ordered) {
    void compare() {
      assertThat(ordered.outcomes()).isEqualTo(plain.outcomes());
    }
  }

  /** One random program, done by both. */
  private static final class Program {
    final Random random;
    final List<String> names;
    final Server server = new Server();
    final Plain plain = new Plain();
    final Ordered ordered = new Ordered();
    final List<Both> waiting = new ArrayList<>();
    long reached;

    Program(long seed, int places) {
      random = new Random(seed);
      names = new ArrayList<>(IntStream.range(0, places).mapToObj(nth -> "log-" + nth).toList());
    }

    private Promise promise() {
      return new Promise(POSTS, String.format("%032x", random.nextInt(40)), 1_000_000_000);
    }

    private WriteId thing() {
      return WriteId.ofOpaque(POSTS, "object", "v" + random.nextInt(40)).writtenAt(500_000);
    }

    private Dependency one() {
      double kind = random.nextDouble();
      if (kind < 0.8) {
        long version = reached + 1 + random.nextInt(99);
        String name = names.get(random.nextInt(names.size()));
        WriteId write = WriteId.of(POSTS, name, version).writtenAt(500_000);
        return kind < 0.2 ? write.asCovering() : write;
      }
      return kind < 0.9 ? promise() : thing();
    }

    void join() {
      Set<Dependency> wanted = new HashSet<>();
      for (int left = Math.max(1, random.nextInt(6) - 2); left > 0; left--) {
        wanted.add(one());
      }
      Policies policies = random.nextInt(5) == 0 ? REPORTING : RAISING;
      Both both = new Both(new Someone(wanted, policies), new Someone(wanted, policies));
      waiting.add(both);
      plain.waiting.add(both.plain);
      ordered.join(both.ordered);
    }

    /** A deadline, or a cancelled wait. */
    void leave() {
      if (!waiting.isEmpty()) {
        Both both = waiting.remove(random.nextInt(waiting.size()));
        plain.waiting.remove(both.plain);
        ordered.subscribers.leave(both.ordered);
        both.compare();
      }
    }

    /** Logs go on, end, are unknown for a while or go back; things come to be. */
    void change() {
      Collections.shuffle(names, random);
      for (String name : names.subList(0, 1 + random.nextInt(Math.min(names.size(), 6)))) {
        Log each = server.log(name);
        double kind = random.nextDouble();
        if (kind < 0.8) {
          each.position =
              Math.min(each.position + List.of(1, 1, 5, 40).get(random.nextInt(4)), each.end);
        } else if (kind < 0.85) {
          each.end = Math.max(each.position, reached) + random.nextInt(30);
        } else if (kind < 0.9) {
          each.isKnown = true;
        } else { // What was shown may be gone.
          server.incarnation++;
          each.position /= 1 + random.nextInt(2);
          each.end = random.nextBoolean() ? each.position : 1_000_000_000;
          each.isKnown = random.nextDouble() < 0.7;
        }
      }
      reached = server.logs.values().stream().mapToLong(each -> each.position).max().orElse(0);
      Promise promise = promise();
      if (server.things.get(promise) != Status.VISIBLE) { // The first record stays.
        List<Status> records = List.of(Status.VISIBLE, Status.NOT_YET, Status.ABANDONED);
        server.things.put(promise, records.get(random.nextInt(3)));
      }
      server.things.put(thing(), Status.VISIBLE);
      server.isAway = random.nextDouble() < 0.05;
    }

    void poll() {
      plain.poll(server);
      ordered.poll(server);
      for (Both both : waiting) {
        assertThat(both.ordered.waits())
            .as("%s %s", both.plain.outcomes(), both.ordered.outcomes())
            .isEqualTo(both.plain.waits());
        if (!both.plain.waits()) {
          both.compare();
        }
      }
      waiting.removeIf(both -> !both.plain.waits());
    }

    void run(int steps, int joins) {
      for (int nth = 0; nth < steps; nth++) {
        int act = random.nextInt(joins + 6);
        if (act < 3) {
          poll();
        } else if (act < 5) {
          change();
        } else if (act < 6) {
          leave();
        } else {
          join();
        }
      }
      while (!waiting.isEmpty()) {
        leave();
      }
      assertThat(ordered.subscribers.joined()).isEmpty();
      assertThat(ordered.subscribers.isPromised()).isFalse();
    }
  }

  /** Whatever joins, leaves, comes and goes: waits end when they end by the plain scan. */
  @ParameterizedTest
  @CsvSource({"1, 6, 400", "1, 20, 800", "3, 6, 400", "200, 6, 200"})
  void nobodyIsMissed(int places, int joins, int steps) {
    for (int seed = 0; seed < SEEDS; seed++) {
      Program program = new Program(seed, places);
      program.run(steps, joins);
      assertThat(program.ordered.mostPlaces).isLessThanOrEqualTo(Subscribers.MOST_PLACES);
    }
  }

  /** All of a log that is shown is met at once, and what then waits is not asked for whole. */
  @Test
  void aPollAsksForTheFirstAndTheLast() {
    int few = Subscribers.FEW;
    Ordered waiting = new Ordered();
    Server server = new Server();
    List<Someone> everyone = new ArrayList<>();
    for (int version = 1; version <= 200; version++) {
      everyone.add(new Someone(Set.of(WriteId.of(POSTS, "log", version)), RAISING));
    }
    everyone.forEach(waiting::join);
    waiting.poll(server); // All of these are new.
    assertThat(waiting.sizes).containsExactly(200);
    record Seen(int position, List<Integer> sizes) {}
    for (Seen each :
        List.of(
            new Seen(few, List.of(few + 1, 4 * few)), // More than the first may be met.
            new Seen(few, List.of(few + 1)),
            new Seen(100, List.of(few + 1, 4 * few, 16 * few)),
            new Seen(100, List.of(few + 1)),
            new Seen(200, List.of(few + 1)))) {
      server.log("log").position = each.position;
      int before = waiting.sizes.size();
      waiting.poll(server);
      assertThat(waiting.sizes.subList(before, waiting.sizes.size())).isEqualTo(each.sizes);
      assertThat(everyone.stream().filter(one -> !one.waits()).count()).isEqualTo(each.position);
    }
  }

  /** Versions have no sign: half of these are negative as Java has it. */
  @Test
  void theLargestVersionsAreInOrder() {
    Ordered waiting = new Ordered();
    Server server = new Server();
    server.log("log").end = -1;
    List<Someone> everyone = new ArrayList<>();
    for (int nth = 0; nth < 40; nth++) {
      WriteId write = WriteId.of(POSTS, "log", Long.MAX_VALUE - 19 + nth);
      everyone.add(new Someone(Set.of(write), RAISING));
    }
    everyone.forEach(waiting::join);
    for (int position : new int[] {0, 10, 30, 40}) {
      server.log("log").position = Long.MAX_VALUE - 20 + position;
      waiting.poll(server);
      assertThat(everyone.stream().filter(one -> !one.waits()).count()).isEqualTo(position);
    }
  }

  /** Who was not told of a poll learns by the next one when that left it waiting. */
  @Test
  void whoIsToldLateLearnsWhenItWaited() {
    Subscribers subscribers = new Subscribers();
    Server server = new Server();
    List<Someone> everyone = new ArrayList<>();
    for (int version = 1; version <= 20; version++) {
      everyone.add(new Someone(Set.of(WriteId.of(POSTS, "log", version)), RAISING));
    }
    everyone.forEach(each -> subscribers.join(each, each.wanted(POSTS), 0));
    Map<Subscriber, Long> left = new HashMap<>();
    for (long now = 1; now <= 3; now++) {
      server.log("log").position = now < 3 ? 0 : 20;
      Subscribers.Told told = subscribers.shown(server.observe(subscribers.asks()), now);
      for (Subscribers.Tell each : told.whom()) {
        Long at = each.left();
        if (at != null) {
          left.put(each.one().subscriber(), at);
        }
      }
      List<Long> unused = subscribers.settle(told.all(), POSTS);
    }
    assertThat(left).doesNotContainKeys(everyone.get(0), everyone.get(19));
    assertThat(left).containsEntry(everyone.get(11), 2L);
  }
}
