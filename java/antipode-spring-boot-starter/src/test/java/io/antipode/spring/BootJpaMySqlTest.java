package io.antipode.spring;

/** JPA over MySQL. */
class BootJpaMySqlTest extends BootJpaTest {
  BootJpaMySqlTest() {
    super("mysql");
  }
}
