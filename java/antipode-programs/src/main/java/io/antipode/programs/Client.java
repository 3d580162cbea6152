package io.antipode.programs;

import java.util.List;

/** How an application uses one server: a pool with JDBC, or a mapper over one. */
interface Client extends AutoCloseable {
  /** One call of a client or a few that belong together; what it throws is the application's. */
  @FunctionalInterface
  interface Doing {
    void run() throws Exception;
  }

  /** A step with its name, for whoever reads what went wrong. */
  record Action(String name, Doing doing) {}

  /** What one request has of it: a connection, or a session. */
  interface Use extends AutoCloseable {
    /** Returns what may be done; where it is to write, that too. */
    List<Action> actions(boolean isWriting);

    /** Ends what may be open. */
    void end(boolean commits) throws Exception;

    /** Returns the number that each write raises, as it is read here. */
    long value() throws Exception;

    /** Ends a connection whose driver failed. */
    void giveUp();

    @Override
    void close() throws Exception;
  }

  /** Begins a use of it. */
  Use use() throws Exception;

  @Override
  void close() throws Exception;
}
