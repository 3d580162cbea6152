package io.antipode.postgresql;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/** Polls one server on one connection: no release so far can wait for a position itself. */
final class PostgreSqlEndpoint implements Endpoint {
  /** By as many of {@code wal_writer_delay} a server flushes what did not wait for it. */
  private static final int FLUSHES = 3;

  private static final Duration PAUSE = Duration.ofMillis(10);

  private final PostgreSqlShim shim;
  private final Link link;

  /** As the last poll named it; empty before the first. */
  private String server = "";

  /**
   * Connects.
   *
   * @throws UnreachableException if there is no connection now
   * @throws RefusedException if the server does not let this user in
   */
  PostgreSqlEndpoint(PostgreSqlShim shim, Address address, Duration timeout)
      throws RefusedException {
    this.shim = shim;
    try {
      this.link = Link.connect(address, timeout);
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) throws RefusedException {
    ServerState state = state(timeout);
    requireOneServer();
    server = state.server();
    return shim.observation(state, writes).build();
  }

  @Override
  public Observation promised(Collection<Promise> promises, Duration timeout)
      throws RefusedException {
    if (server.isEmpty()) {
      server = state(timeout).server();
    }
    requireOneServer();
    Observation.Builder shown = Observation.of(server);
    try {
      link.setTimeout(timeout);
      Records.of(link, promises).forEach(shown::promise);
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
    return shown.build();
  }

  private void requireOneServer() throws RefusedException {
    if (!shim.pooled().isEmpty()) {
      throw new RefusedException(shim.pooled(), "");
    }
  }

  @Override
  public boolean isReplica(Duration timeout) throws RefusedException {
    return state(timeout).isRecovering();
  }

  /** Returns what the server is now. */
  ServerState state(Duration timeout) throws RefusedException {
    try {
      link.setTimeout(timeout);
      return shim.state(link);
    } catch (NoLsnException error) {
      throw new RefusedException(String.valueOf(error.getMessage()), "");
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  /**
   * Returns a flush position that is after every commit of before. One that did not wait for its
   * flush may have been seen, and is flushed within three of {@code wal_writer_delay}.
   *
   * @throws UnreachableException if there is none in time
   */
  long flushedAll(Duration timeout) throws RefusedException {
    long deadlineNs = System.nanoTime() + timeout.toNanos();
    try {
      Map<String, String> row = link.ask(Look.SAMPLE).get(0);
      long until = Lsn.flushedEnd(Lsn.parse(row.getOrDefault("inserted", "")));
      long flushed = Lsn.parse(row.getOrDefault("flushed", ""));
      if (Lsn.isAtLeast(flushed, until)) {
        return flushed;
      }
      String delayMs = link.ask(Look.WRITER_DELAY).get(0).getOrDefault("ms", "0");
      long endNs = System.nanoTime() + Long.parseLong(delayMs) * FLUSHES * 1_000_000;
      while (!Lsn.isAtLeast(flushed, until) && System.nanoTime() - endNs < 0) {
        if (System.nanoTime() + PAUSE.toNanos() - deadlineNs > 0) {
          throw new UnreachableException("the primary has not flushed its log yet");
        }
        LockSupport.parkNanos(PAUSE.toNanos());
        flushed = Lsn.parse(link.ask(Look.SAMPLE).get(0).getOrDefault("flushed", ""));
      }
      return flushed; // What is after it is of open transactions.
    } catch (NoLsnException error) {
      throw new RefusedException(String.valueOf(error.getMessage()), "");
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  @Override
  public void interrupt() {
    link.interrupt();
  }

  @Override
  public void close() {
    link.close();
  }
}
