package io.antipode.jdbc;

import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.Places;
import io.antipode.barrier.Shim;
import io.antipode.barrier.UnreachableException;
import java.sql.SQLException;
import java.sql.SQLNonTransientException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A call of JDBC that is held back, until it may be made, is cancelled, or took too long. */
public final class HeldCall {
  private final Shim shim;

  /** Of the pool whose connection it keeps. */
  private final Places places;

  /** The application's; null for a read that has none. */
  private final @Nullable Statement statement;

  /** How long the application was kept before it had the connection. */
  private final Duration waited;

  private volatile @Nullable HeldRead held;
  private volatile boolean isCancelled;

  HeldCall(Shim shim, Places places, @Nullable Statement statement, Duration waited) {
    this.shim = shim;
    this.places = places;
    this.statement = statement;
    this.waited = waited;
  }

  /** Ends it, if the application cancels its statement, in another thread. */
  void cancel(Object cancelled) {
    if (cancelled == statement) {
      isCancelled = true;
      HeldRead read = held;
      if (read != null) {
        read.giveUp();
      }
    }
  }

  /**
   * Waits until a poll shows a floor.
   *
   * @param poll asks once, on the connection that will read
   * @param interrupted what the database's driver says of a statement that was cancelled or took
   *     too long: the state and the number of its error
   * @throws io.antipode.barrier.UnmetException if the floor is not met in time, or never
   * @throws SQLTimeoutException if the statement's query timeout is over
   * @throws SQLException if the statement was cancelled
   * @throws Exception what a poll throws, where there was time left
   */
  public void await(Floor floor, Floor.Look poll, Interrupted interrupted) throws Exception {
    if (floor.isOver()) {
      return;
    }
    long limit = timeout();
    long untilNs = System.nanoTime() + limit - waited.toNanos();
    try (HeldRead read = floor.hold(shim, places)) {
      held = read;
      for (Duration pause = take(poll, read); pause != null; pause = take(poll, read)) {
        long left = limit == 0 ? Long.MAX_VALUE : untilNs - System.nanoTime();
        if (!isCancelled && left > 0) {
          read.pause(Duration.ofNanos(Math.min(pause.toNanos(), left)));
        }
        if (isCancelled) {
          throw new SQLNonTransientException(
              "the statement was cancelled while a barrier held it back",
              interrupted.state,
              interrupted.number);
        }
        if (limit != 0 && untilNs - System.nanoTime() <= 0) {
          throw new SQLTimeoutException(
              "the statement's query timeout was over while a barrier held it back",
              interrupted.state,
              interrupted.number);
        }
      }
    }
  }

  /**
   * What a driver says of a statement that was cancelled, or took too long.
   *
   * @param state the error's SQLSTATE
   * @param number the server's number; 0 where it has none
   */
  public record Interrupted(String state, int number) {}

  private static @Nullable Duration take(Floor.Look poll, HeldRead read) throws Exception {
    try {
      return read.take(poll.observe(read.pollTimeout()));
    } catch (UnreachableException error) {
      read.failed(error);
      throw error;
    }
  }

  /** Returns the query timeout of the statement in nanoseconds; 0 for none. */
  private long timeout() {
    try {
      return statement == null ? 0 : TimeUnit.SECONDS.toNanos(statement.getQueryTimeout());
    } catch (SQLException closed) {
      return 0; // It says so itself.
    }
  }
}
