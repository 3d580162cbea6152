package io.antipode.postgresql;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.jdbc.Superseded;
import io.antipode.lineage.LineageText;
import io.antipode.postgresql.Link.State;
import io.antipode.request.Recording;
import io.antipode.runtime.Time;
import java.sql.SQLException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The setting by which a connection says what its writes depend on, which triggers store. It is one
 * of the transaction, which ends with it; outside of transactions one of the session, which is
 * taken back after the statement: nobody who gets the connection later may write what it says.
 */
final class LineageSetting {
  private static final String NAME = "antipode.lineage";

  /** It is on its way, or may be another by now. */
  private static final String UNKNOWN = "?";

  private final PostgreSqlShim shim;
  private final Link link;
  private final Session who;
  private final Held session;

  /** What the open transaction has; empty for nothing of its own. */
  private String transaction;

  /** What is known of a session, whoever borrows its connection. */
  static final class Held {
    /** What it has outside of transactions; empty for nothing. */
    private String value = "";

    /** Whether no pooler is in between; null while nobody has asked. */
    private @Nullable Boolean isDirect;
  }

  LineageSetting(PostgreSqlShim shim, Link link, Session who) {
    this.shim = shim;
    this.link = link;
    this.who = who;
    this.session = who.setting();
    this.transaction = link.state() == State.IDLE ? "" : UNKNOWN;
  }

  /** Returns whether later writes would get something. */
  boolean isSet() {
    return !session.value.isEmpty() || !transaction.isEmpty();
  }

  /**
   * Lets what is written depend on the current lineage.
   *
   * @param isNamed whether a table of ours is named: else a statement is sent without, where only a
   *     pooler stands against it
   * @param isWithin whether it is sent in a transaction
   * @return whether it is set
   * @throws ConfigurationException if a pooler is in between where the session's would be needed
   */
  boolean set(boolean isNamed, boolean isWithin) throws SQLException {
    Recording.recordStored(who);
    String text = LineageText.stored(Antipode.current());
    long until = Time.hour() + Settings.current().horizon().toHours() + 1;
    String value = until + " " + text + " " + Superseded.pattern(text);
    if (value.equals(transaction.isEmpty() ? session.value : transaction)) {
      return true;
    }
    if (isWithin) {
      transaction = UNKNOWN;
      link.execute("SET LOCAL " + NAME + " = '" + value + "'");
      transaction = value;
      return true;
    }
    if (isDirect()) {
      session.value = UNKNOWN;
      link.execute("SET " + NAME + " = '" + value + "'");
      session.value = value;
      return true;
    }
    if (isNamed) {
      throw new ConfigurationException(
          "a pooler is before '"
              + shim.datastore()
              + "', behind which a session keeps no setting: write to tables whose rows have stored"
              + " lineages in a transaction");
    }
    return false;
  }

  private boolean isDirect() throws SQLException {
    Boolean known = session.isDirect;
    if (known == null) {
      String backend =
          link.ask("SELECT pg_backend_pid() AS backend").get(0).getOrDefault("backend", "");
      known = link.backend().equals(backend);
      session.isDirect = known;
    }
    return known;
  }

  /** A statement, or a call that sends some, was answered. */
  void after(Mentions said, Set<Effect> effects, boolean hasFailed) {
    boolean isSeveral = effects.contains(Effect.SEVERAL);
    if (said.goesBack()
        || said.forgets()
        || hasFailed
        || isSeveral
        || effects.contains(Effect.COMMITS_INSIDE)) {
      transaction = UNKNOWN; // A savepoint brings an older one back.
    }
    boolean ends =
        effects.contains(Effect.COMMITS)
            || effects.contains(Effect.ENDS)
            || effects.contains(Effect.TWO_PHASES);
    State state = link.state();
    if (state == State.IDLE || state == State.LOST || (ends && !isSeveral && !hasFailed)) {
      transaction = "";
    }
    takeBack();
  }

  /** The client itself goes back to a savepoint. */
  void wentBack() {
    transaction = UNKNOWN;
  }

  /** The application gives the connection back: no session stays that would store what it has. */
  void end() {
    takeBack();
    if (!session.value.isEmpty() && link.state() == State.IDLE) {
      link.close();
    }
  }

  private void takeBack() {
    if (session.value.isEmpty() || link.state() != State.IDLE) {
      return; // A rollback would bring it back.
    }
    try {
      link.send("RESET " + NAME);
      session.value = "";
    } catch (SQLException error) {
      session.value = UNKNOWN; // Until the next call, or the end.
    }
  }
}
