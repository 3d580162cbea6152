package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.postgresql.PostgreSqlShim;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Time;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;

/** JPA over PostgreSQL, with snapshots of transactions as the other stores have them. */
class BootJpaPostgreSqlTest extends BootJpaTest {
  private static final String REPEATABLE =
      "?options=-c%20default_transaction_isolation%3Drepeatable%5C%20read";

  BootJpaPostgreSqlTest() {
    super("postgresql");
  }

  @Override
  String jdbc(String url) {
    return super.jdbc(url) + REPEATABLE;
  }

  /** By its address, too. */
  @Override
  List<String> replicaSettings(String rule) {
    String replica = "postgresql://127.0.0.1:" + Lab.port(lab().otherUrl());
    return List.of("--antipode.datastores=" + rule + ",posts=" + replica + "?reads_from=replica");
  }

  /** Replay waits for a reader of a table that the primary locked. */
  @Override
  AutoCloseable held() throws SQLException {
    try (Connection primary = connect(lab().url());
        Statement writing = primary.createStatement()) {
      boolean unused = writing.execute("CREATE TABLE IF NOT EXISTS boot_held ()");
      Connection standby = connect(lab().otherUrl());
      try (Statement reading = standby.createStatement()) {
        while (!isThere(reading)) {
          Thread.onSpinWait();
        }
        standby.setAutoCommit(false);
        unused = reading.execute("SELECT * FROM boot_held");
      }
      unused = writing.execute("BEGIN; LOCK TABLE boot_held IN ACCESS EXCLUSIVE MODE; COMMIT");
      return standby;
    }
  }

  private static boolean isThere(Statement reading) throws SQLException {
    try (ResultSet found = reading.executeQuery("SELECT to_regclass('boot_held') IS NOT NULL")) {
      return found.next() && found.getBoolean(1);
    }
  }

  private Connection connect(String url) throws SQLException {
    return DriverManager.getConnection(jdbc(url), "app", "app");
  }

  @Entity(name = "Kept")
  @Table(name = "boot_kept")
  static class Kept {
    @Id private long id;
    private String text;

    /** For Hibernate. */
    protected Kept() {}

    Kept(long id, String text) {
      this.id = id;
      this.text = text;
    }
  }

  private interface Work {
    void of(EntityManager entities);
  }

  /** Returns what a request depends on afterwards that had a transaction. */
  private static Lineage within(EntityManagerFactory factory, Lineage before, Work work) {
    try (ScopeBlock request = Antipode.scope(before.serialize());
        EntityManager entities = factory.createEntityManager()) {
      entities.getTransaction().begin();
      work.of(entities);
      entities.getTransaction().commit();
      return Antipode.current();
    }
  }

  /** What a request writes keeps what it depends on; who finds it, or finds it gone, gets that. */
  @Test
  void rowsOfEntitiesKeepTheirLineage() throws Exception {
    String url = "postgresql://app:app@127.0.0.1:" + Lab.port(lab().url()) + "/app";
    String script = Lab.python("antipode_shims.postgresql", "migration", "--url", url, "boot_kept");
    try (Connection owner = connect(lab().url());
        Statement migration = owner.createStatement()) {
      boolean unused = migration.execute(script);
    }
    WriteId cause = WriteId.of("elsewhere", "log", 7).writtenAt(Time.hour());
    WriteId later = WriteId.of("elsewhere", "other", 8).writtenAt(Time.hour());
    try (HikariDataSource plain = new HikariDataSource()) {
      plain.setJdbcUrl(jdbc(lab().url()));
      plain.setUsername("app");
      plain.setPassword("app");
      PostgreSqlShim shim =
          PostgreSqlShim.builder("kept", jdbc(lab().url())).user("app", "app").register();
      try (EntityManagerFactory entities = entities(shim.instrument(plain, Set.of("boot_kept")))) {
        Lineage unused =
            within(entities, Lineage.of(cause), each -> each.persist(new Kept(1, "a")));
        unused =
            within(
                entities,
                Lineage.of(later),
                each -> Objects.requireNonNull(each.find(Kept.class, 1L)).text = "b");
        Lineage read =
            within(entities, Lineage.empty(), each -> assertThat(found(each, 1)).isEqualTo("b"));
        assertThat(read.writes()).contains(cause, later);
        unused =
            within(
                entities,
                Lineage.empty(),
                each -> each.remove(Objects.requireNonNull(each.find(Kept.class, 1L))));
        Lineage gone =
            within(entities, Lineage.empty(), each -> assertThat(found(each, 1)).isNull());
        assertThat(gone.writes()).contains(cause, later);
        assertThat(gone.incomplete()).isEmpty();
      } finally {
        shim.close();
      }
    }
  }

  private static @Nullable String found(EntityManager entities, long id) {
    Kept kept = entities.find(Kept.class, id);
    return kept == null ? null : kept.text;
  }

  private static EntityManagerFactory entities(DataSource pool) {
    LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
    factory.setDataSource(pool);
    factory.setManagedTypes(PersistenceManagedTypes.of(Kept.class.getName()));
    factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
    factory.afterPropertiesSet();
    return Objects.requireNonNull(factory.getObject());
  }
}
