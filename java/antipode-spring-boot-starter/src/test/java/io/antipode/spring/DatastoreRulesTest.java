package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;

/** Which URL is which address, and what is refused: as in {@code test_datastores.py} of Python. */
class DatastoreRulesTest {
  private static DatastoreRules of(Map<String, Object> properties) {
    StandardEnvironment environment = new StandardEnvironment();
    environment.getPropertySources().addFirst(new MapPropertySource("given", properties));
    return DatastoreRules.of(environment);
  }

  private static @Nullable String found(
      DatastoreRules rules, Store store, String host, int port, @Nullable String database) {
    DatastoreRule rule = rules.find(store, List.of(new Place(host, port)), database);
    return rule == null ? null : rule.datastore();
  }

  @ParameterizedTest
  @CsvSource({
    "redis://Cache.:6379/0, REDIS, cache, 6379, 0",
    "rediss://user:secret@127.0.0.1, REDIS, localhost, 6379,",
    "redis://[::1]:7000, REDIS, localhost, 7000,",
    "unix:///run/redis.sock, REDIS, /run/redis.sock, 0,",
    "redis+sentinel://mymaster, REDIS, sentinel mymaster, 0,",
    "redis+sentinel://mymaster/1, REDIS, sentinel mymaster, 0, 1",
    "'redis+sentinel://s1,s2:7000/mymaster/1', REDIS, sentinel mymaster by s2, 7000, 1",
    "mysql://[2001:db8:0::0001], MYSQL, 2001:db8:0:0:0:0:0:1, 3306,",
    "mysql://[::ffff:10.0.0.1], MYSQL, 10.0.0.1, 3306,",
    "mysql://db?both=true, MYSQL, db, 3306,",
    "mysql+pymysql://db/shop, MYSQL, db, 3306, shop",
    "mysql://localhost?unix_socket=/run/m.sock, MYSQL, /run/m.sock, 0,",
    "mariadb://db:3307, MYSQL, db, 3307,",
    "'mongodb://a,b:27018/', MONGODB, b, 27018,",
    "mongodb+srv://set.example, MONGODB, set.example, 0,",
    "amqps://broker/%2Fvhost, RABBITMQ, broker, 5671, /vhost",
    "dynamodb://eu-west-1?reads_from=replica, DYNAMODB, eu-west-1, 443,",
    "s3://127.0.0.1:4566, S3, localhost, 4566,",
    "sns://eu-west-1, SNS, eu-west-1, 443,"
  })
  void urls(String url, Store store, String host, int port, @Nullable String database) {
    DatastoreRules rules = DatastoreRules.parsed("posts=" + url);
    DatastoreRule rule = rules.find(store, List.of(new Place(host, port)), database);
    assertThat(rule).isNotNull();
    assertThat(rule.database()).isEqualTo(database);
    assertThat(rule.toString()).doesNotContain("secret");
  }

  /** Commas within MongoDB's URLs end no entry; several URLs of one name are several rules. */
  @Test
  void theVariableAndPropertiesSayTheSame() {
    DatastoreRules text =
        of(
            Map.of(
                "antipode.datastores",
                "po_sts=mongodb://a,b, feed=redis://c/0,feed=redis://d/0?reads_from=replica"));
    DatastoreRules properties =
        of(
            Map.of(
                "antipode.datastores.po_sts", "mongodb://a,b",
                "antipode.datastores.feed[0]", "redis://c/0",
                "antipode.datastores.feed[1]", "redis://d/0?reads_from=replica"));
    for (DatastoreRules rules : List.of(text, properties)) {
      assertThat(found(rules, Store.MONGODB, "b", 27017, null)).isEqualTo("po_sts");
      assertThat(found(rules, Store.REDIS, "c", 6379, "0")).isEqualTo("feed");
      DatastoreRule replica = rules.find(Store.REDIS, List.of(new Place("d", 6379)), "0");
      assertThat(replica.readsFrom()).isEqualTo(ReadsFrom.REPLICA);
    }
    assertThat(of(Map.of()).have(Store.REDIS)).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "posts mysql://db, an entry is a name and a URL",
    "posts=db:3306, begins with one of",
    "posts=ftp://db, begins with one of redis://",
    "posts=redis://user:secret@db:port, is no host with a port",
    "posts=mysql://user:1/secret@db, write / as %2F",
    "posts=mysql://user:a?secret@db, write / as %2F",
    "posts=mysql:secret@db, begins with one of",
    "posts=mysql://user:a secret@db, an entry is a name and a URL",
    "posts=redis://a?password=secret, 'not ''password'''",
    "posts=mongodb://a/app, 'for all databases: take ''/app'' off'",
    "posts=redis://cache/posts, databases of Redis have numbers",
    "posts=mysql://db:0, a port is 1 to 65535",
    "posts=mysql://db:65536, a port is 1 to 65535",
    "posts=mongodb+srv://set.example:27017, its URL takes no port",
    "posts=redis://::1:6379, stands in brackets",
    "posts=postgresql:///shop?host=db, a host stands after",
    "media=s3://eu-west-1/bucket, of a region or of an endpoint",
    "posts=redis://a?both=true&reads_from=replica, take reads_from out",
    "'-=redis://h, a=redis://h', is a datastore and is none",
    "'posts=redis://a,b', repeat the name for others",
    "posts=redis://a?read_from=replica, 'takes reads_from, one_server, both after'",
    "posts=redis://a?reads_from=near, 'reads_from is primary or replica, not ''near'''",
    "@all=redis://a, begins with no '@'",
    "'a=redis://h/0, b=redis://h:6379/0', redis at h:6379/0 has two names",
    "'a=redis://h, a=redis://h?reads_from=replica', 'named twice, with different options'"
  })
  void whatIsRefused(String text, String why) {
    assertThatThrownBy(() -> DatastoreRules.parsed(text))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining(why)
        .hasMessageContaining("ANTIPODE_DATASTORES")
        .hasMessageNotContaining("secret");
  }

  /** A variable that services of several languages share ends the start of none. */
  @Test
  void storesOfOtherLanguagesAreLeftAside() {
    DatastoreRules rules = DatastoreRules.parsed("rows=stomp://db:61613, all=redis://h");
    assertThat(found(rules, Store.REDIS, "h", 6379, "0")).isEqualTo("all");
  }

  /** An entry may say that an address is no datastore of ours: nothing is instrumented there. */
  @Test
  void whatIsNoDatastoreOfOursHasNoName() {
    DatastoreRules rules = DatastoreRules.parsed("cache=redis://h, -=redis://h/1, -=redis://other");
    assertThat(found(rules, Store.REDIS, "h", 6379, "0")).isEqualTo("cache");
    assertThat(found(rules, Store.REDIS, "h", 6379, "1")).isNull();
    assertThat(found(rules, Store.REDIS, "other", 6379, "0")).isNull();
  }

  /** A rule for a client's database goes before one for all. */
  @Test
  void whichRuleIsForAClient() {
    DatastoreRules rules = DatastoreRules.parsed("all=redis://h, own=redis://h/1");
    assertThat(found(rules, Store.REDIS, "h", 6379, "0")).isEqualTo("all");
    assertThat(found(rules, Store.REDIS, "h", 6379, "1")).isEqualTo("own");
    assertThat(found(rules, Store.MYSQL, "h", 6379, "0")).isNull();
  }

  /** Two deployments of Sentinel have one service name: a rule for one is not for the other. */
  @Test
  void whoWatchesAServiceGoesBeforeItsName() {
    DatastoreRules rules =
        DatastoreRules.parsed("any=redis+sentinel://mymaster, own=redis+sentinel://s1,s2/mymaster");
    for (String watching : List.of("s2", "s4")) {
      Place by = Place.ofSentinels("mymaster", Place.of(watching, DatastoreRules.SENTINEL_PORT));
      DatastoreRule rule = rules.find(Store.REDIS, List.of(by, Place.ofSentinels("mymaster")), "0");
      assertThat(rule).isNotNull();
      assertThat(rule.datastore()).isEqualTo(watching.equals("s2") ? "own" : "any");
    }
  }

  private static Stream<String> longTexts() {
    return Stream.of(
        ",".repeat(100_000) + "x",
        " ".repeat(100_000) + "=",
        "a=redis://h" + " ,".repeat(50_000) + "x",
        "a".repeat(100_000),
        "a=".repeat(50_000),
        "a=mysql://" + ":".repeat(100_000),
        "a=mysql://b/" + "@".repeat(100_000),
        "a=mysql://h?" + "z".repeat(100_000),
        "a=redis://h/" + "z".repeat(100_000));
  }

  /** 100 kB are refused with an error of a few lines, in linear time: quadratic is minutes. */
  @ParameterizedTest
  @MethodSource("longTexts")
  @Timeout(60)
  void aLongTextIsRefusedSoon(String text) {
    assertThatThrownBy(() -> DatastoreRules.parsed(text))
        .isInstanceOf(ConfigurationException.class)
        .satisfies(error -> assertThat(error.getMessage()).hasSizeLessThan(1_000));
  }

  /** Nor do as many entries, or hosts of one, take longer. */
  @Test
  @Timeout(60)
  void manyEntriesAreReadSoon() {
    String entries =
        IntStream.range(0, 5_000)
            .mapToObj(each -> "a" + each + "=redis://h" + each)
            .collect(Collectors.joining(" ,"));
    DatastoreRules rules = DatastoreRules.parsed(entries);
    assertThat(found(rules, Store.REDIS, "h4999", 6379, "0")).isEqualTo("a4999");
    rules = DatastoreRules.parsed("a=mongodb://" + "h,".repeat(50_000) + "z");
    assertThat(found(rules, Store.MONGODB, "z", 27017, null)).isEqualTo("a");
  }
}
