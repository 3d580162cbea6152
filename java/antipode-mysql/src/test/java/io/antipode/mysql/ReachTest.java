package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.mysql.cj.jdbc.MysqlDataSource;
import io.antipode.ConfigurationException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.OptionalLong;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which URLs lead to several servers, as the two drivers read them, and which connections may. */
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

  /** A server says its own number in the handshake, of which 32 bits are there. */
  @ParameterizedTest
  @CsvSource({"7,7", "4294967295,-1", "7,4294967303", "4294967303,7"})
  void theServerThatAcceptedTheConnection(String session, long accepted) {
    assertThat(Reach.proxied(OptionalLong.of(accepted), session)).isEmpty();
  }

  /** A proxy says one of its own; a driver that tells none leaves it unknown. */
  @Test
  void aConnectionThatMayLeadElsewhere() {
    assertThat(Reach.proxied(OptionalLong.of(7), "8")).contains("number 7", "knows it as 8");
    assertThat(Reach.proxied(OptionalLong.empty(), "8")).contains("oneServer()");
    assertThat(Reach.proxied(OptionalLong.of(7), "")).contains("oneServer()");
  }

  private static Facts facts(String proxied) throws RefusedException {
    return Facts.of(
        Map.of("version", "9.7.0", "server_id", "1", "gtid_mode", "ON", "gtid_executed", ""),
        "1",
        proxied);
  }

  /** The numbers of another connection may be equal by chance. */
  @Test
  void oneThatShowsAProxyShowsItForAllOfItsShim() throws RefusedException {
    try (MySqlShim shim = MySqlShim.builder("posts", "jdbc:mysql://127.0.0.1:1/app").register()) {
      shim.require(facts(""));
      assertThat(shim.reached(facts("a proxy"))).isFalse();
      assertThat(shim.reached(facts(""))).isFalse();
      Facts equal = facts("");
      assertThatThrownBy(() -> shim.require(equal))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("a proxy");
    }
  }

  @Test
  void whatTheApplicationStatesIsNotChecked() throws RefusedException {
    try (MySqlShim shim =
        MySqlShim.builder("posts", "jdbc:mysql://127.0.0.1:1/app").oneServer().register()) {
      shim.require(facts("a proxy"));
    }
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
