package io.antipode.mysql;

import java.util.List;
import java.util.regex.Pattern;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Whether what a driver connects to is one server, as its URL says. */
final class Reach {
  /** What is wrong with a URL of several, and what to do. */
  static final String SEVERAL =
      "its URL names several servers, and a statement may go to any of them: use one pool and one"
          + " shim for each server";

  /** A URL that leads to one server. */
  private static final Pattern ONE =
      Pattern.compile("jdbc:(?:mysql|mariadb)://[^,/?]*+(?:[/?].*+)?");

  /** Other URLs may be of drivers that wrap one of these. */
  private static final Pattern OURS = Pattern.compile("jdbc:(?:mysql|mariadb)[:+].*+");

  /** How pools and drivers' data sources call the property. */
  private static final List<String> GETTERS = List.of("getJdbcUrl", "getUrl", "getURL");

  private Reach() {}

  /** Returns whether the URL of a connection leads to one server. */
  static boolean isOne(String url) {
    return ONE.matcher(url).matches();
  }

  /**
   * Returns whether a pool is known to lead to several servers. Nothing is connected for it: who
   * says nothing of its URL is judged by its connections.
   */
  static boolean isSeveral(DataSource pool) {
    return GETTERS.stream()
        .map(getter -> text(pool, getter))
        .anyMatch(url -> url != null && OURS.matcher(url).matches() && !isOne(url));
  }

  private static @Nullable String text(DataSource pool, String getter) {
    try {
      return pool.getClass().getMethod(getter).invoke(pool) instanceof String url ? url : null;
    } catch (ReflectiveOperationException | RuntimeException error) {
      return null;
    }
  }
}
