package io.antipode.programs;

import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Random;
import java.util.Set;
import javax.sql.DataSource;

/**
 * What applications do with JDBC, at random, on a primary and a late replica: {@code RandomJdbc
 * postgresql jdbc:postgresql://primary/app jdbc:postgresql://replica/app tcpKeepAlive=true
 * hikari,dbcp STEPS SEED}. Prints for each pool or mapper one line of JSON about what was lost,
 * read too early, and marked needlessly. For the tests alone; {@code make programs ONLY=java} runs
 * it.
 */
public final class RandomJdbc {
  private static final String USER = "app";

  /** What is no pool, but has one. */
  private static final Set<String> MAPPERS = Set.of("hibernate", "jooq", "mybatis");

  private RandomJdbc() {}

  /** What a store gives to its programs. */
  record Store(Shim primary, Shim replica, Instrument writes, Instrument reads)
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

  private static Client client(
      String kind, String name, DataSource pool, Steps steps, Random random) {
    return switch (kind) {
      case "hibernate" -> new HibernateClient(pool, random, steps.value());
      case "jooq" -> new JooqClient(pool, name, random, steps.value());
      case "mybatis" -> new MyBatisClient(pool, random, steps.value());
      default -> new JdbcClient(pool, steps);
    };
  }

  /** Runs the clients that are named. */
  public static void main(String[] arguments) throws Exception {
    run(arguments, (client, random) -> client);
  }

  /** Uses a client in another way. */
  @FunctionalInterface
  interface Way {
    Client of(Client plain, Random random);
  }

  /** Runs the clients that are named, each used in this way. */
  static void run(String[] arguments, Way way) throws Exception {
    System.setProperty("org.jooq.no-logo", "true");
    System.setProperty("org.jooq.no-tips", "true");
    System.setProperty("p6spy.config.modulelist", "com.p6spy.engine.spy.P6SpyFactory");
    String name = arguments[0];
    String url = arguments[1];
    String otherUrl = arguments[2];
    String options = "?" + arguments[3];
    int steps = Integer.parseInt(arguments[5]);
    Random random = new Random(Long.parseLong(arguments[6]));
    Steps made = name.equals("postgresql") ? new PostgreSqlSteps(random) : new MySqlSteps(random);
    try (Store store = Store.of(name, url, otherUrl);
        Connection truth = DriverManager.getConnection(url, USER, USER);
        Connection shown = DriverManager.getConnection(otherUrl, USER, USER)) {
      made.make(truth);
      for (String kind : arguments[4].split(",", -1)) {
        Requests requests = new Requests(made, random, truth, shown);
        requests.awaitTables();
        String pool = MAPPERS.contains(kind) ? "hikari" : kind;
        Pools.Pool writing = Pools.of(pool, url + options, USER);
        Pools.Pool reading = Pools.of(pool, otherUrl + options, USER);
        try (AutoCloseable first = writing.closing();
            AutoCloseable second = reading.closing();
            Client writes =
                way.of(
                    client(kind, name, store.writes.of(writing.source()), made, random), random);
            Client reads =
                way.of(
                    client(kind, name, store.reads.of(reading.source()), made, random), random)) {
          requests.run(writes, reads, steps);
        }
        System.out.println(requests.tally().line(kind));
      }
    }
    System.exit(0); // What a program left running does not count.
  }
}
