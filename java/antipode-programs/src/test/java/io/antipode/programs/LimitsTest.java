package io.antipode.programs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.alibaba.druid.pool.DruidDataSource;
import com.mchange.v2.c3p0.ComboPooledDataSource;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.lab.Lab;
import io.antipode.request.ScopeBlock;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What ends a read that waits, in the pools that applications have, at a replica that is late. */
@Tag("lab")
@Tag("slow")
class LimitsTest {
  /** Nothing written here comes before the tests are over. */
  private static final int LAG_MS = 600_000;

  private static final Duration LONG = Duration.ofSeconds(25);
  private static final Duration DEADLINE = Duration.ofMillis(300);
  private static final Duration SECOND = Duration.ofSeconds(1);

  /** By how much an end may be late. */
  private static final Duration LATE = Duration.ofMillis(100);

  /** How often it is measured at most, for others may be at work on the machine: one will do. */
  private static final int TRIES = 5;

  private static final String READ = "SELECT v FROM kept";

  private static final List<String> POOLS =
      List.of("hikari", "dbcp", "tomcat", "druid", "c3p0", "p6spy");

  /** What servers say of a statement that was cancelled. */
  private static final List<String> CANCELLED = List.of("57014", "70100");

  private interface Wait {
    /** Returns by how much it was late. */
    Duration late() throws Exception;
  }

  private interface Read {
    void read() throws Exception;
  }

  /** One pool of a replica, and the pool that writes at its primary. */
  private record Reads(DataSource writes, DataSource pool) {
    /** In a request: writes what does not come, and lets the next read wait for it for so long. */
    void depends(Duration timeout) throws SQLException {
      try (Connection connection = writes.getConnection()) {
        execute(connection, "UPDATE kept SET v = v + 1");
      }
      Barriers.barrier(BarrierOptions.timeout(timeout).atRead());
    }

    /** Reads on a connection of its own. */
    void read() throws SQLException {
      try (Connection connection = pool.getConnection()) {
        select(connection);
      }
    }

    private static void select(Connection connection) throws SQLException {
      execute(connection, READ);
    }

    private static void execute(Connection connection, String sql) throws SQLException {
      try (Statement statement = connection.createStatement()) {
        boolean unused = statement.execute(sql);
      }
    }

    Duration deadlineInThePool() throws Exception {
      try (ScopeBlock request = Antipode.scope()) {
        depends(DEADLINE);
        return since(DEADLINE, () -> refused(BarrierTimeoutException.class, this::read));
      }
    }

    Duration deadlineOfAHeldRead() throws Exception {
      try (ScopeBlock request = Antipode.scope();
          Connection connection = pool.getConnection()) {
        depends(DEADLINE);
        return since(
            DEADLINE, () -> refused(BarrierTimeoutException.class, () -> select(connection)));
      }
    }

    Duration barrier() throws Exception {
      try (ScopeBlock request = Antipode.scope()) {
        depends(LONG);
        return since(
            DEADLINE,
            () ->
                refused(
                    BarrierTimeoutException.class,
                    () -> Barriers.barrier(BarrierOptions.timeout(DEADLINE))));
      }
    }

    /** The pool has a time limit: there is a connection then, on which a read goes on to wait. */
    Duration limitOfThePool() throws Exception {
      try (ScopeBlock request = Antipode.scope()) {
        depends(LONG);
        return since(SECOND, () -> pool.getConnection().close());
      }
    }

    Duration limitOfAQuery() throws Exception {
      try (ScopeBlock request = Antipode.scope()) {
        long startedNs = System.nanoTime(); // The time until the connection was there counts.
        try (Connection connection = pool.getConnection();
            Statement statement = connection.createStatement()) {
          Duration taken = Duration.ofNanos(System.nanoTime() - startedNs);
          depends(LONG);
          statement.setQueryTimeout(1);
          try {
            return since(
                SECOND.minus(taken),
                () -> refused(SQLTimeoutException.class, () -> statement.execute(READ)));
          } finally {
            statement.setQueryTimeout(0);
          }
        }
      }
    }

    /** The pool knows it of the query before: both waits together last no longer. */
    Duration limitOfTheQueryBefore() throws Exception {
      try (Connection connection = pool.getConnection();
          Statement statement = connection.createStatement()) {
        statement.setQueryTimeout(1);
      }
      try (ScopeBlock request = Antipode.scope()) {
        depends(LONG);
        return since(
            SECOND,
            () -> {
              try (Connection connection = pool.getConnection();
                  Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                refused(SQLTimeoutException.class, () -> statement.execute(READ));
                statement.setQueryTimeout(0);
              }
            });
      }
    }

    Duration interruptInThePool() throws Exception {
      return sinceEnded(this::read, Thread::interrupt, Reads::wasInterrupted);
    }

    Duration interruptOfAHeldRead() throws Exception {
      try (Connection connection = pool.getConnection()) {
        return sinceEnded(() -> select(connection), Thread::interrupt, Reads::wasInterrupted);
      }
    }

    private static boolean wasInterrupted(SQLException error) {
      return Thread.interrupted() && error.getCause() instanceof InterruptedException;
    }

    Duration cancelOfAHeldRead() throws Exception {
      try (Connection connection = pool.getConnection();
          Statement statement = connection.createStatement()) {
        return sinceEnded(
            () -> statement.execute(READ),
            thread -> statement.cancel(),
            error -> CANCELLED.contains(error.getSQLState()));
      }
    }

    private interface End {
      void end(Thread thread) throws SQLException;
    }

    private interface Judge {
      boolean isRight(SQLException error);
    }

    /** Makes a request in another thread, ends it once it waits; returns how long that took. */
    private Duration sinceEnded(Read read, End end, Judge judge) throws Exception {
      FutureTask<Long> request =
          new FutureTask<>(
              () -> {
                try (ScopeBlock scope = Antipode.scope()) {
                  depends(LONG);
                  read.read();
                  throw new AssertionError("it was answered");
                } catch (SQLException error) {
                  long endedNs = System.nanoTime();
                  assertThat(judge.isRight(error)).as(error.toString()).isTrue();
                  return endedNs;
                }
              });
      Thread thread = new Thread(request);
      thread.start();
      while (!isHeld(thread) && !isDone(request)) {
        // It is on its way.
      }
      long endedNs = System.nanoTime();
      end.end(thread);
      return Duration.ofNanos(request.get() - endedNs);
    }
  }

  private static boolean isHeld(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING
        && Arrays.stream(thread.getStackTrace())
            .map(StackTraceElement::getClassName)
            .anyMatch(
                name ->
                    name.equals("io.antipode.barrier.HeldRead")
                        || name.equals("io.antipode.barrier.Floor"));
  }

  /** Waits for a moment; returns whether a task is over by then. */
  private static boolean isDone(FutureTask<?> task) throws Exception {
    try {
      Object unused = task.get(1, TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException running) {
      return false;
    }
  }

  private static void refused(Class<? extends Exception> by, Read read) {
    assertThatThrownBy(read::read).isInstanceOf(by);
  }

  /** Returns by how much a read outlasts a limit, and never less than that. */
  private static Duration since(Duration limit, Read read) throws Exception {
    long startedNs = System.nanoTime();
    read.read();
    Duration late = Duration.ofNanos(System.nanoTime() - startedNs).minus(limit);
    assertThat(late).isGreaterThanOrEqualTo(Duration.ZERO);
    return late;
  }

  private static void assertInTime(String what, Wait wait) throws Exception {
    Duration best = LONG;
    for (int left = TRIES; left > 0 && best.compareTo(LATE) >= 0; left--) {
      Duration late = wait.late();
      best = late.compareTo(best) < 0 ? late : best;
    }
    assertThat(best).as(what).isLessThan(LATE);
  }

  /** Gives a pool its own limit. */
  private static void limit(Pools.Pool pool, Duration limit) throws SQLException {
    int millis = (int) limit.toMillis();
    if (pool.closing() instanceof HikariDataSource hikari) {
      hikari.setConnectionTimeout(millis);
    } else if (pool.source() instanceof BasicDataSource dbcp) {
      dbcp.setMaxWait(limit);
    } else if (pool.source() instanceof org.apache.tomcat.jdbc.pool.DataSource tomcat) {
      tomcat.setMaxWait(millis);
    } else if (pool.source() instanceof DruidDataSource druid) {
      druid.setMaxWait(millis);
    } else {
      ((ComboPooledDataSource) pool.source()).setCheckoutTimeout(millis);
    }
  }

  /** Waits until a pool has a connection, which takes a busy machine longer than its limit. */
  private static void fill(DataSource pool) throws SQLException {
    for (int left = TRIES; left > 0; left--) {
      try {
        pool.getConnection().close();
        return;
      } catch (SQLException late) {
        if (left == 1) {
          throw late;
        }
      }
    }
  }

  private static void whatEndsAWait(
      String kind, RandomJdbc.Store store, DataSource writes, String url) throws Exception {
    Pools.Pool made = Pools.of(kind, url, "app");
    try (AutoCloseable closing = made.closing()) {
      limit(made, LONG);
      Reads reads = new Reads(writes, store.reads().of(made.source()));
      fill(reads.pool);
      assertInTime(kind + ", a barrier in getConnection()", reads::deadlineInThePool);
      assertInTime(kind + ", a barrier of a held read", reads::deadlineOfAHeldRead);
      assertInTime(kind + ", a barrier", reads::barrier);
      assertInTime(kind + ", setQueryTimeout", reads::limitOfAQuery);
      assertInTime(kind + ", setQueryTimeout in getConnection()", reads::limitOfTheQueryBefore);
      assertInTime(kind + ", an interrupt in getConnection()", reads::interruptInThePool);
      assertInTime(kind + ", an interrupt", reads::interruptOfAHeldRead);
      assertInTime(kind + ", cancel", reads::cancelOfAHeldRead);
      limit(made, SECOND);
      fill(reads.pool);
      assertInTime(kind + ", the pool's limit", reads::limitOfThePool);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"mysql", "mariadb", "postgresql"})
  void allThatLimitsAWaitEndsIt(String name) throws Exception {
    try (Lab lab = Lab.start(name, LAG_MS)) {
      String url = "jdbc:" + name + "://127.0.0.1:" + Lab.port(lab.url()) + "/app";
      String otherUrl = "jdbc:" + name + "://127.0.0.1:" + Lab.port(lab.otherUrl()) + "/app";
      Pools.Pool writing = Pools.of("hikari", url, "app");
      try (AutoCloseable closing = writing.closing();
          RandomJdbc.Store store = RandomJdbc.Store.of(name, url, otherUrl)) {
        DataSource writes = store.writes().of(writing.source());
        try (Connection connection = writes.getConnection()) {
          Reads.execute(connection, "CREATE TABLE kept (v INT)");
          Reads.execute(connection, "INSERT INTO kept VALUES (0)");
        }
        for (String kind : POOLS) {
          whatEndsAWait(kind, store, writes, otherUrl);
        }
      }
    }
  }
}
