package io.antipode.mysql;

import io.antipode.ConfigurationException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One server, and who asks it.
 *
 * @param flavor whose driver is used
 * @param options after the {@code ?} of the JDBC URL; empty for none
 */
record Address(
    Flavor flavor,
    String host,
    int port,
    String database,
    String options,
    @Nullable String user,
    @Nullable String password) {
  private static final Pattern URL =
      Pattern.compile("jdbc:(mysql|mariadb)://([^,/?:]+)(?::(\\d+))?/([^?]*)(?:\\?(.*))?");

  /**
   * Returns the address that a JDBC URL names.
   *
   * @throws ConfigurationException if it names no server of MySQL or MariaDB, or several
   */
  static Address of(String url, @Nullable String user, @Nullable String password) {
    Matcher match = URL.matcher(url);
    if (!match.matches()) {
      throw new ConfigurationException(
          "a shim is of one server, as jdbc:mysql://host:3306/database or jdbc:mariadb://...");
    }
    return new Address(
        match.group(1).equals("mysql") ? Flavor.MYSQL : Flavor.MARIADB,
        match.group(2),
        match.group(3) == null ? 3306 : Integer.parseInt(match.group(3)),
        match.group(4),
        match.group(5) == null ? "" : match.group(5),
        user,
        password);
  }

  /** Returns the same user at another server. */
  Address at(String otherHost, int otherPort) {
    return new Address(flavor, otherHost, otherPort, database, options, user, password);
  }

  String url() {
    String scheme = flavor == Flavor.MYSQL ? "mysql" : "mariadb";
    String base = "jdbc:" + scheme + "://" + host + ":" + port + "/" + database;
    return options.isEmpty() ? base : base + "?" + options;
  }

  @Override
  public String toString() {
    return host + ":" + port;
  }
}
