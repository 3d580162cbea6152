package io.antipode.programs;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.request.ScopeBlock;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Requests of random steps, compared with what rows say: no write is lost, no read is early. */
final class Requests {
  private static final Duration SOON = Duration.ofSeconds(20);

  private static final List<String> DRIVERS =
      List.of(
          "com.mysql.cj.",
          "org.mariadb.jdbc.",
          "org.postgresql.",
          "com.zaxxer.hikari.",
          "org.apache.commons.",
          "org.apache.tomcat.",
          "com.alibaba.druid.",
          "com.mchange.",
          "com.p6spy.");

  private final Steps store;
  private final Random random;
  private final Connection truth;
  private final Connection shown;

  private final Tally tally = new Tally();

  /** Plain connections to the primary and the replica say what is there. */
  Requests(Steps store, Random random, Connection truth, Connection shown) {
    this.store = store;
    this.random = random;
    this.truth = truth;
    this.shown = shown;
  }

  Tally tally() {
    return tally;
  }

  /** Waits until the replica has what was made. */
  void awaitTables() throws SQLException, InterruptedException {
    long made = value(truth);
    long untilNs = System.nanoTime() + SOON.toNanos();
    while (true) {
      try {
        if (value(shown) == made) {
          return;
        }
      } catch (SQLException missing) {
        if (System.nanoTime() > untilNs) {
          throw missing;
        }
      }
      Thread.sleep(10);
    }
  }

  /** Makes requests until there were so many steps. */
  void run(Client writes, Client reads, int most) throws Exception {
    while (tally.steps() < most) {
      tally.begins();
      request(writes, reads);
    }
  }

  private void request(Client writes, Client reads) throws Exception {
    long before = value(truth);
    try (ScopeBlock request = Antipode.scope()) {
      boolean isOpen = true;
      try (Client.Use writing = writes.use();
          Client.Use reading = reads.use()) {
        for (int left = 2 + random.nextInt(8); left > 0; left--) {
          boolean isWriting = random.nextInt(3) > 0;
          attempt(isWriting ? "P" : "R", isWriting ? writing : reading, isWriting);
          if (random.nextInt(5) == 0) {
            readBack(reading, before);
          }
          if (random.nextInt(8) == 0) {
            leave(before);
          }
        }
        isOpen = !ends(writing);
      } catch (Exception closing) {
        if (!isOfTheDriver(closing)) {
          throw closing;
        }
      }
      // The pool has rolled back what was open.
      long after = value(truth);
      Lineage lineage = Antipode.current();
      if (after != before && lineage.incomplete().isEmpty()) {
        awaited("at the end", after);
      } else if (after == before && !isOpen && !lineage.incomplete().isEmpty()) {
        tally.alarm();
      }
    }
  }

  /** Ends what may be open, mostly; returns whether it did. */
  private boolean ends(Client.Use writing) {
    int how = random.nextInt(5);
    String text = how < 3 ? "COMMIT" : "ROLLBACK";
    tally.does("P " + (how == 4 ? "nothing" : text));
    if (how == 4) {
      return false;
    }
    try {
      writing.end(how < 3);
      return true;
    } catch (Exception error) {
      tally.does(name(error));
      return false;
    }
  }

  /** Something leaves with the lineage, and whoever gets it waits for what is committed by now. */
  private void leave(long before) throws SQLException {
    long committed = value(truth);
    Lineage lineage = Antipode.current();
    if (committed == before || !lineage.incomplete().isEmpty()) {
      return;
    }
    tally.does("leaves");
    awaited("in between", committed);
  }

  private void awaited(String when, long committed) throws SQLException {
    try {
      Barriers.barrier(BarrierOptions.timeout(SOON));
    } catch (UnmetException unmet) {
      tally.alarm("unmet " + when + ": " + unmet.getMessage());
      return;
    }
    tally.judges();
    long found = value(shown);
    if (found < committed) {
      tally.lost(when + ": " + found + " instead of " + committed + " with " + Antipode.current());
    }
  }

  /** A barrier, at times a step of the replica's connection, then a read by it. */
  private void readBack(Client.Use reading, long before) throws SQLException {
    long committed = value(truth);
    if (committed == before || !Antipode.current().incomplete().isEmpty()) {
      return;
    }
    tally.does("barrier");
    Barriers.barrier(BarrierOptions.timeout(SOON).atRead());
    if (random.nextBoolean()) {
      attempt("R", reading, false);
    }
    try {
      long found = reading.value();
      tally.judges();
      if (found < committed) {
        tally.early(found + " instead of " + committed + " with " + Antipode.current());
      }
    } catch (StaleSnapshotException refused) {
      tally.does("refused");
    } catch (RuntimeException error) {
      giveUp(reading, error);
    } catch (Exception error) {
      tally.does(name(error)); // The pool gave the connection up after an error before.
    }
  }

  private void attempt(String where, Client.Use use, boolean isWriting) {
    List<Client.Action> all = use.actions(isWriting);
    Client.Action step = all.get(random.nextInt(all.size()));
    tally.steps(where + " " + step.name());
    try {
      step.doing().run();
    } catch (StaleSnapshotException refused) {
      tally.does("refused");
    } catch (RuntimeException error) {
      giveUp(use, error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    } catch (Exception error) {
      tally.does(name(error));
    }
  }

  private static String name(Exception error) {
    return error instanceof SQLException sql
        ? "error " + sql.getSQLState()
        : error.getClass().getSimpleName();
  }

  /** Ends a connection whose driver failed: nothing after it counts. */
  private void giveUp(Client.Use use, RuntimeException error) {
    if (!isOfTheDriver(error)) {
      throw error;
    }
    tally.does("misread");
    use.giveUp();
  }

  /**
   * Returns whether an error comes from the driver or the pool. A cancel may be late, and end what
   * the driver or the pool itself asks, in this request or the next: some replies that are cut so
   * are misread by Connector/J.
   */
  private static boolean isOfTheDriver(Exception error) {
    return Arrays.stream(error.getStackTrace())
        .map(StackTraceElement::getClassName)
        .filter(name -> !name.startsWith("java.") && !name.startsWith("jdk."))
        .findFirst()
        .filter(name -> DRIVERS.stream().anyMatch(name::startsWith))
        .isPresent();
  }

  private long value(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(store.value())) {
      return rows.next() ? rows.getLong(1) : -1;
    }
  }
}
