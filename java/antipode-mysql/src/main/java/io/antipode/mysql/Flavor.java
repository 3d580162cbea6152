package io.antipode.mysql;

import java.util.Locale;

/** Which of the two families a server belongs to. */
enum Flavor {
  MYSQL,
  MARIADB;

  /** Returns the family of a server of a version. */
  static Flavor of(String version) {
    return version.toLowerCase(Locale.ROOT).contains("mariadb") ? MARIADB : MYSQL;
  }

  @Override
  public String toString() {
    return this == MYSQL ? "MySQL" : "MariaDB";
  }
}
