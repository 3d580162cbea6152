package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One server, and who asks it.
 *
 * @param options after the {@code ?} of the JDBC URL; empty for none
 */
record Address(
    String host,
    int port,
    String database,
    String options,
    @Nullable String user,
    @Nullable String password) {
  private static final Pattern URL =
      Pattern.compile(
          "jdbc:postgresql://(\\[[^]/?,]+]|[^],/?:]+)(?::(\\d{1,5}))?/([^?]*)(?:\\?(.*))?");

  /** What a URL of several servers has. */
  private static final Pattern SEVERAL = Pattern.compile("jdbc:postgresql://[^/?]*,.*");

  /**
   * Returns the address that a JDBC URL names.
   *
   * @throws ConfigurationException if it names no server of PostgreSQL, or several
   */
  static Address of(String url, @Nullable String user, @Nullable String password) {
    Matcher match = URL.matcher(url);
    if (!match.matches()) {
      throw new ConfigurationException(
          "a shim is of one server, as jdbc:postgresql://host:5432/database");
    }
    return new Address(
        match.group(1),
        match.group(2) == null ? 5432 : Integer.parseInt(match.group(2)),
        match.group(3),
        match.group(4) == null ? "" : match.group(4),
        user,
        password);
  }

  /** Returns whether some URL names several servers, to any of which a connection may lead. */
  static boolean isSeveral(List<String> urls) {
    return urls.stream().anyMatch(url -> SEVERAL.matcher(url).matches());
  }

  String url() {
    String base = "jdbc:postgresql://" + host + ":" + port + "/" + database;
    return options.isEmpty() ? base : base + "?" + options;
  }

  @Override
  public String toString() {
    return host + ":" + port;
  }
}
