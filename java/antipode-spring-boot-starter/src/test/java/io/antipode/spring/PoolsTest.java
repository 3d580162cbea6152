package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;
import net.ttddyy.dsproxy.support.ProxyDataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;

/** Which pools the starter instruments. No server is asked. */
class PoolsTest {
  private static final String DATASTORE = "antipode.mysql.pools.near-posts.datastore=posts";

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeMySqlAutoConfiguration.class))
          .withBean("nearPosts", DataSource.class, PoolsTest::pool)
          .withBean("others", DataSource.class, PoolsTest::pool);

  private static DataSource pool() {
    HikariDataSource pool = new HikariDataSource();
    pool.setJdbcUrl("jdbc:mysql://127.0.0.1:1/app");
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
}
