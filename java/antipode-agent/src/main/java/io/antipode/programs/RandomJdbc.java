package io.antipode.programs;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Random;
import javax.sql.DataSource;

/**
 * What applications do with JDBC, at random, on a primary and a late replica: {@code RandomJdbc
 * postgresql jdbc:postgresql://primary/app jdbc:postgresql://replica/app tcpKeepAlive=true hikari
 * STEPS SEED}. Prints one line of JSON about what was lost, read too early, and marked needlessly.
 * For the tests alone; {@code make programs ONLY=java} runs it.
 */
public final class RandomJdbc {
  private static final String USER = "app";

  /** Nobody has more connections at a time. */
  private static final int CONNECTIONS = 2;

  private RandomJdbc() {}

  /** What a store gives to its programs. */
  private record Store(Shim primary, Shim replica, Instrument writes, Instrument reads)
      implements AutoCloseable {
    /** Instruments a pool. */
    @FunctionalInterface
    interface Instrument {
      DataSource of(DataSource pool);
    }

    static Store of(String name, String url, String otherUrl) {
      if (name.equals("postgresql")) {
        PostgreSqlShim primary = PostgreSqlShim.builder(name, url).user(USER, USER).register();
        PostgreSqlShim replica =
            PostgreSqlShim.builder(name, otherUrl)
                .user(USER, USER)
                .readsFrom(ReadsFrom.REPLICA)
                .register();
        return new Store(primary, replica, primary::instrument, replica::instrument);
      }
      MySqlShim primary = MySqlShim.builder(name, url).user(USER, USER).register();
      MySqlShim replica =
          MySqlShim.builder(name, otherUrl)
              .user(USER, USER)
              .readsFrom(ReadsFrom.REPLICA)
              .register();
      return new Store(primary, replica, primary::instrument, replica::instrument);
    }

    @Override
    public void close() {
      primary.close();
      replica.close();
    }
  }

  private static HikariDataSource pool(String url, boolean commits) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(USER);
    config.setPassword(USER);
    config.setMaximumPoolSize(CONNECTIONS);
    config.setAutoCommit(commits);
    return new HikariDataSource(config);
  }

  /** Runs one client. */
  public static void main(String[] arguments) throws Exception {
    String name = arguments[0];
    String url = arguments[1];
    String otherUrl = arguments[2];
    String options = "?" + arguments[3];
    boolean commits = !arguments[4].equals("hikari-manual");
    int steps = Integer.parseInt(arguments[5]);
    Random random = new Random(Long.parseLong(arguments[6]));
    Steps made = name.equals("postgresql") ? new PostgreSqlSteps(random) : new MySqlSteps(random);
    try (Store store = Store.of(name, url, otherUrl);
        HikariDataSource writing = pool(url + options, commits);
        HikariDataSource reading = pool(otherUrl + options, commits);
        Connection truth = DriverManager.getConnection(url, USER, USER);
        Connection shown = DriverManager.getConnection(otherUrl, USER, USER)) {
      Requests requests = new Requests(made, random, truth, shown);
      made.make(truth);
      requests.awaitTables();
      requests.run(store.writes.of(writing), store.reads.of(reading), steps);
      ObjectNode line = JsonNodeFactory.instance.objectNode();
      line.put("steps", requests.steps()).put("lost", requests.lost());
      line.put("early", requests.early()).put("alarms", requests.alarms());
      line.put("judged", requests.judged());
      requests.notes().forEach(line.putArray("notes")::add);
      System.out.println(line);
    }
    System.exit(0); // What a program left running does not count.
  }
}
