package io.antipode.spring;

/** JPA over MariaDB. */
class BootJpaMariaDbTest extends BootJpaTest {
  BootJpaMariaDbTest() {
    super("mariadb");
  }
}
