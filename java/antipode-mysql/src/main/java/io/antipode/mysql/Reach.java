package io.antipode.mysql;

import io.antipode.jdbc.PoolProperties;
import java.util.OptionalLong;
import java.util.regex.Pattern;
import javax.sql.DataSource;

/** Whether what a driver connects to is one server, as its URL says. */
final class Reach {
  /** What is wrong with a URL of several, and what to do. */
  static final String SEVERAL =
      "its URL names several servers, and a statement may go to any of them: use one pool and one"
          + " shim for each server";

  private static final String STATE =
      ": where all statements of a connection reach one server, as with a user of its own for each"
          + " group of servers, state that by oneServer()";

  private static final String UNCHECKED =
      "whether a connection leads to one server cannot be checked" + STATE;

  /** So much of a connection's number is in its handshake. */
  private static final long NUMBER = 0xFFFF_FFFFL;

  /** A URL that leads to one server. */
  private static final Pattern ONE =
      Pattern.compile("jdbc:(?:mysql|mariadb)://[^,/?]*+(?:[/?].*+)?");

  /** Other URLs may be of drivers that wrap one of these. */
  private static final Pattern OURS = Pattern.compile("jdbc:(?:mysql|mariadb)[:+].*+");

  private Reach() {}

  /**
   * Returns why another server may be read than the one that answered; empty where it is known to
   * be the one that accepted the connection.
   *
   * @param accepted the connection's number in its handshake: a server says its own there, and a
   *     proxy that accepts connections itself one of its own
   * @param session by which the server that answered knows the connection
   */
  static String proxied(OptionalLong accepted, String session) {
    if (accepted.isEmpty() || session.isEmpty()) {
      return UNCHECKED;
    }
    long given = accepted.getAsLong() & NUMBER;
    long known = Long.parseUnsignedLong(session) & NUMBER;
    return given == known
        ? ""
        : "a proxy accepted this connection (as number "
            + given
            + "; the server that answers knows it as "
            + known
            + "), so that the server that is read need not be the one that is asked"
            + STATE;
  }

  /** Returns whether the URL of a connection leads to one server. */
  static boolean isOne(String url) {
    return ONE.matcher(url).matches();
  }

  /**
   * Returns whether a pool is known to lead to several servers. Nothing is connected for it: who
   * says nothing of its URL is judged by its connections.
   */
  static boolean isSeveral(DataSource pool) {
    return PoolProperties.urls(pool).stream()
        .anyMatch(url -> OURS.matcher(url).matches() && !isOne(url));
  }
}
