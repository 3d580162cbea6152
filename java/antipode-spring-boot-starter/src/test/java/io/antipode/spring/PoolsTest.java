package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import java.util.Objects;
import javax.sql.DataSource;
import net.ttddyy.dsproxy.support.ProxyDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;

/** Which pools the starter instruments. No server is asked. */
class PoolsTest {
  @RegisterExtension private final Logged logged = new Logged();

  private static final String DATASTORE = "antipode.mysql.pools.near-posts.datastore=posts";

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeMySqlAutoConfiguration.class))
          .withBean("nearPosts", DataSource.class, PoolsTest::pool)
          .withBean("others", DataSource.class, PoolsTest::pool);

  private static final String URL = "jdbc:mysql://127.0.0.1:1/app";

  private static DataSource pool() {
    return pool(URL);
  }

  private static DataSource pool(String url) {
    HikariDataSource pool = new HikariDataSource();
    pool.setJdbcUrl(url);
    return pool;
  }

  @Test
  void thePoolThatAPropertyNamesAndNoOther() {
    application
        .withPropertyValues(DATASTORE)
        .run(
            context -> {
              assertThat(context.getBean("nearPosts")).isInstanceOf(ProxyDataSource.class);
              assertThat(context.getBean("others")).isInstanceOf(HikariDataSource.class);
              HikariDataSource pool =
                  context.getBean("nearPosts", DataSource.class).unwrap(HikariDataSource.class);
              assertThat(pool.getDataSourceProperties()).containsEntry("trackSessionState", "true");
            });
  }

  /** By its address; what properties of MySQL's say is about MySQL's pools alone. */
  @Test
  void aPoolOfPostgreSql() {
    application
        .withConfiguration(AutoConfigurations.of(AntipodePostgreSqlAutoConfiguration.class))
        .withBean("rows", DataSource.class, () -> pool("jdbc:postgresql://127.0.0.1/app"))
        .withBean("far", DataSource.class, () -> pool("jdbc:postgresql://127.0.0.1:2/app"))
        .withPropertyValues(
            "antipode.datastores=rows=postgresql+psycopg://localhost:5432?reads_from=replica")
        .run(
            context -> {
              PostgreSqlShim shim =
                  Objects.requireNonNull(
                      PostgreSqlShim.of(context.getBean("rows", DataSource.class)));
              assertThat(shim.datastore()).isEqualTo("rows");
              assertThat(shim.readsFrom()).isEqualTo(ReadsFrom.REPLICA);
              assertThat(context.getBean("far")).isInstanceOf(HikariDataSource.class);
              assertThat(context.getBean("nearPosts")).isInstanceOf(HikariDataSource.class);
            });
  }

  /** By the name of its bean, with the tables with whose rows it stores lineages. */
  @Test
  void aPoolOfPostgreSqlThatAPropertyNames() {
    ApplicationContextRunner named =
        application
            .withConfiguration(AutoConfigurations.of(AntipodePostgreSqlAutoConfiguration.class))
            .withBean("rows", DataSource.class, () -> pool("jdbc:postgresql://127.0.0.1/app"))
            .withPropertyValues(
                "antipode.postgresql.pools.rows.datastore=rows",
                "antipode.postgresql.pools.rows.reads-from=replica");
    named
        .withPropertyValues("antipode.postgresql.pools.rows.tables=orders")
        .run(
            context -> {
              PostgreSqlShim shim =
                  Objects.requireNonNull(
                      PostgreSqlShim.of(context.getBean("rows", DataSource.class)));
              assertThat(shim.datastore()).isEqualTo("rows");
              assertThat(shim.readsFrom()).isEqualTo(ReadsFrom.REPLICA);
              assertThat(context.getBean("nearPosts")).isInstanceOf(HikariDataSource.class);
            });
    named
        .withPropertyValues("antipode.postgresql.pools.rows.tables[0]=")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("of tables"));
  }

  @Test
  void aPoolInADecoratorOfTheApplications() {
    application
        .withBean("spied", DataSource.class, () -> new ProxyDataSource(pool()))
        .withPropertyValues("antipode.mysql.pools.spied.datastore=posts")
        .run(
            context -> {
              HikariDataSource pool =
                  context.getBean("spied", DataSource.class).unwrap(HikariDataSource.class);
              assertThat(pool.getDataSourceProperties()).containsEntry("trackSessionState", "true");
            });
  }

  @Test
  void whatChoosesAmongPoolsIsNone() {
    application
        .withBean(
            "routed",
            DataSource.class,
            () -> new ProxyDataSource(new LazyConnectionDataSourceProxy(pool())))
        .withPropertyValues("antipode.mysql.pools.routed.datastore=posts")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("routed.url"));
  }

  @Test
  void aNameThatIsNoPoolsEndsTheStart() {
    application
        .withPropertyValues("antipode.mysql.pools.nearPost.datastore=posts")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .hasMessage(
                        "antipode.mysql.pools.nearPost names no bean of the type DataSource;"
                            + " there are nearPosts, others"));
  }

  private static final String RULES =
      "antipode.datastores=shop-db=mysql://localhost:1/app, others=mysql://else:1/app,"
          + " shop-db=mysql://replica:1?reads_from=replica";

  private static DataSource replica() {
    DriverManagerDataSource pool = new DriverManagerDataSource();
    pool.setUrl("jdbc:mysql://replica:1/app?trackSessionState=true");
    pool.setUsername("app");
    pool.setPassword("app");
    return pool;
  }

  /** Bean names are in no property: whatever connects to the address is instrumented. */
  @Test
  void eachPoolWhoseAddressARuleNames() {
    application
        .withBean("replica", DataSource.class, PoolsTest::replica)
        .withPropertyValues(RULES)
        .run(
            context -> {
              MySqlShim near = MySqlShim.of(context.getBean("nearPosts", DataSource.class));
              assertThat(near.datastore()).isEqualTo("shop-db");
              assertThat(near.readsFrom()).isEqualTo(ReadsFrom.PRIMARY);
              MySqlShim far = MySqlShim.of(context.getBean("replica", DataSource.class));
              assertThat(far.readsFrom()).isEqualTo(ReadsFrom.REPLICA);
            });
    assertThat(logged.text())
        .contains(
            "instrumented: nearPosts -> shop-db, tracked; others -> shop-db, tracked;"
                + " replica -> shop-db (replica), tracked")
        .doesNotContain("not instrumented");
  }

  @Test
  void aPoolThatNoRuleNamesIsReported() {
    application
        .withBean("far", DataSource.class, () -> pool("jdbc:mysql://far:3307/app"))
        .withBean("many", DataSource.class, () -> pool("jdbc:mysql://a:1,b:1/app"))
        .withBean("h2", DataSource.class, () -> pool("jdbc:h2:mem:test"))
        .withPropertyValues(RULES)
        .run(
            context -> assertThat(MySqlShim.of(context.getBean("far", DataSource.class))).isNull());
    assertThat(logged.text())
        .contains(
            "not instrumented: far (mysql at far:3307/app); many (its URL names several servers:"
                + " use one pool for each).")
        .doesNotContain("h2");
  }

  /** A pool that another bean decorates is instrumented once, and none of the two is reported. */
  @Test
  void whatDecoratesAnInstrumentedPoolStaysAsItIs() {
    DataSource plain = pool();
    application
        .withBean(
            "decorated",
            DelegatingDataSource.class,
            () ->
                new DelegatingDataSource(
                    MySqlShim.builder("own", URL).register().instrument(plain)))
        .withBean("within", DataSource.class, () -> plain)
        .run(context -> assertThat(context.getBean("within")).isInstanceOf(HikariDataSource.class));
    assertThat(logged.text()).doesNotContain("within (").doesNotContain("decorated");
  }

  @Test
  void theNameOfABeanGoesBeforeItsAddress() {
    application
        .withPropertyValues(RULES, DATASTORE)
        .withPropertyValues("antipode.mysql.pools.others.tables=posts")
        .run(
            context -> {
              MySqlShim near = MySqlShim.of(context.getBean("nearPosts", DataSource.class));
              assertThat(near.datastore()).isEqualTo("posts");
              MySqlShim others = MySqlShim.of(context.getBean("others", DataSource.class));
              assertThat(others.datastore()).as("with other properties").isEqualTo("shop-db");
            });
  }

  /** A replica without its primary, or without a router, ends the start. */
  @Test
  void staleReadsThatAreToGoToThePrimaryNeedARouter() {
    Settings before =
        Settings.configure(
            held -> held.withBarriers(ReadBarriers.AUTO).withOnStale(OnStale.PRIMARY));
    try {
      ApplicationContextRunner both =
          application
              .withBean("replica", DataSource.class, PoolsTest::replica)
              .withPropertyValues(RULES);
      both.run(
          context ->
              assertThat(context).getFailure().hasMessageContaining("PrimaryWhenStaleDataSource"));
      both.withBean("routed", DataSource.class, () -> new LazyConnectionDataSourceProxy(pool()))
          .run(
              context ->
                  assertThat(context)
                      .as("one that asks nobody")
                      .getFailure()
                      .hasMessageContaining("PrimaryWhenStaleDataSource"));
      both.withUserConfiguration(Routed.class).run(context -> assertThat(context).hasNotFailed());
      both.withUserConfiguration(WrongWayRound.class)
          .run(
              context ->
                  assertThat(context)
                      .getFailure()
                      .rootCause()
                      .hasMessageContaining("the primary's first"));
    } finally {
      Settings unused = Settings.configure(held -> before);
    }
  }

  @Configuration
  static class Routed {
    @Bean
    DataSource routed(
        @Qualifier("nearPosts") DataSource primary, @Qualifier("replica") DataSource replica) {
      return new PrimaryWhenStaleDataSource(primary, replica);
    }
  }

  @Configuration
  static class WrongWayRound {
    @Bean
    DataSource routed(
        @Qualifier("nearPosts") DataSource primary, @Qualifier("replica") DataSource replica) {
      return new PrimaryWhenStaleDataSource(/* primary= */ replica, /* replica= */ primary);
    }
  }

  @Test
  void aPoolThatIsStatedToLeadToOneServer() {
    application
        .withPropertyValues(DATASTORE, "antipode.mysql.pools.near-posts.one-server=true")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void noneWhereNoPropertySaysSo() {
    application.run(
        context -> assertThat(context.getBean("nearPosts")).isInstanceOf(HikariDataSource.class));
  }

  @Test
  void aPoolWithoutADatastoreEndsTheStart() {
    application
        .withPropertyValues("antipode.mysql.pools.nearPosts.reads-from=replica")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining(".datastore"));
  }

  @Test
  void aTableWithoutANameEndsTheStart() {
    application
        .withPropertyValues(DATASTORE, "antipode.mysql.pools.near-posts.tables[0]=")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("of tables"));
  }

  /** Of the address alone: nothing of R2DBC is on the class path. */
  @Test
  void whatIsReachedByR2dbc() {
    for (String[] each :
        new String[][] {
          {"r2dbc:pool:postgresql://app:secret@db:5432/app", "orders=postgresql://db", "orders"},
          {"r2dbc:mysql://db", "posts=mysql://db:3306", "posts"},
          {"r2dbc:mariadb://db:3307/app", "posts=mysql://db:3306", ""},
          {"r2dbc:h2:mem:///app", "posts=mysql://db:3306", ""},
        }) {
      application
          .withPropertyValues("antipode.datastores=" + each[1], "spring.r2dbc.url=" + each[0])
          .run(context -> assertThat(context).hasNotFailed());
      String said = "spring.r2dbc.url leads to '" + each[2] + "'";
      if (each[2].isEmpty()) {
        assertThat(R2dbcWarning.find(each[0], DatastoreRules.parsed(each[1]))).isNull();
      } else {
        assertThat(logged.text()).contains(said).doesNotContain("secret");
      }
    }
  }
}
