package io.antipode.programs;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;

/**
 * A pool, and what programs do with its connections.
 *
 * @param steps of its store
 */
record JdbcClient(DataSource pool, Steps steps) implements Client {
  @Override
  public Use use() throws SQLException {
    return new Lent(pool.getConnection(), steps);
  }

  @Override
  public void close() {
    // Whoever made the pool closes it.
  }

  private record Lent(Connection connection, Steps steps) implements Use {
    @Override
    public List<Action> actions(boolean isWriting) {
      return Stream.concat(
              steps.reading().stream(),
              isWriting ? steps.writing().stream() : Stream.<Steps.Named>empty())
          .map(each -> new Action(each.name(), () -> each.step().on(connection)))
          .toList();
    }

    @Override
    public void end(boolean commits) throws SQLException {
      Steps.execute(connection, commits ? "COMMIT" : "ROLLBACK");
    }

    @Override
    public long value() throws SQLException {
      try (Statement statement = connection.createStatement();
          ResultSet rows = statement.executeQuery(steps.value())) {
        return rows.next() ? rows.getLong(1) : -1;
      }
    }

    @Override
    public void giveUp() {
      try {
        connection.abort(Runnable::run);
      } catch (SQLException closed) {
        // It is what was asked for.
      }
    }

    @Override
    public void close() throws SQLException {
      connection.close();
    }
  }
}
