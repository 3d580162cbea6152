package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;

import com.mysql.cj.jdbc.MysqlDataSource;
import java.lang.reflect.Proxy;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which URLs lead to several servers, as the two drivers read them. */
class ReachTest {
  private static DataSource pool(String url) {
    MysqlDataSource pool = new MysqlDataSource();
    pool.setUrl(url);
    return pool;
  }

  /** Whatever follows the server: its port, a database, options with commas. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "jdbc:mysql://one/app",
        "jdbc:mysql://one:3306/",
        "jdbc:mariadb://one:3306/app?sessionVariables=a=1,b=2",
        "jdbc:mysql://one?user=a,b",
      })
  void oneServer(String url) {
    assertThat(Reach.isOne(url)).isTrue();
    assertThat(Reach.isSeveral(pool(url))).isFalse();
  }

  /** By their number, or by a way to choose among them. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "jdbc:mysql://one,two/app",
        "jdbc:mysql://one:3306,two:3306/app",
        "jdbc:mysql:replication://one,two/app",
        "jdbc:mysql:loadbalance://one,two/app",
        "jdbc:mysql+srv://service/app",
        "jdbc:mariadb://one,two/app",
        "jdbc:mariadb:replication://one,two/app",
        "jdbc:mariadb:sequential://one,two/app",
        "jdbc:mariadb:loadbalance://one,two/app",
        "jdbc:mariadb:load-balance-read://one,two/app",
      })
  void severalServers(String url) {
    assertThat(Reach.isOne(url)).isFalse();
    assertThat(Reach.isSeveral(pool(url))).isTrue();
  }

  /** Its connections are judged: their driver may be wrapped by another one, or not told. */
  @Test
  void aPoolThatDoesNotSayIsNoneOfSeveral() {
    DataSource silent =
        (DataSource)
            Proxy.newProxyInstance(
                ReachTest.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, args) -> null);
    assertThat(Reach.isSeveral(silent)).isFalse();
    assertThat(Reach.isSeveral(pool("jdbc:p6spy:mysql://one,two/app"))).isFalse();
  }
}
