package io.antipode.spring;

import com.zaxxer.hikari.HikariDataSource;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanWrapper;
import org.springframework.beans.BeansException;
import org.springframework.beans.PropertyAccessorFactory;
import org.springframework.util.ClassUtils;

/** A pool of the application's, and what it says of its server. */
final class JdbcPool {
  private static final ClassLoader CLASSES = JdbcPool.class.getClassLoader();
  private static final boolean HAS_HIKARI =
      ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", CLASSES);

  private static final List<Class<?>> ROUTING =
      Stream.of("lookup.AbstractRoutingDataSource", "LazyConnectionDataSourceProxy")
          .<Class<?>>map(name -> found("org.springframework.jdbc.datasource." + name))
          .filter(Objects::nonNull)
          .toList();

  private static final @Nullable Class<?> EMBEDDED =
      found("org.springframework.jdbc.datasource.embedded.EmbeddedDatabase");

  private static final String TRACKING = "trackSessionState";

  /** One server: its driver, its host with a port, its schema, and options. */
  private static final Pattern ONE =
      Pattern.compile(
          "jdbc:(?:p6spy:)?(mysql|mariadb|postgresql)://(\\[[^]]+]|[^,:/?()\\[]*)(?::(\\d{1,5}))?"
              + "(?:/([^?]*))?(\\?.*)?");

  /** Which URLs are of a store, of several of its servers too. */
  private static final Map<Store, Pattern> OURS =
      Map.of(
          Store.MYSQL,
          Pattern.compile("jdbc:(?:p6spy:)?(?:mysql|mariadb)[:+].*"),
          Store.POSTGRESQL,
          Pattern.compile("jdbc:(?:p6spy:)?postgresql:.*"));

  private static final Map<Store, Integer> PORTS =
      Map.of(Store.MYSQL, 3306, Store.POSTGRESQL, 5432);

  /** Of which store it is, if it is one of that. */
  private final Store store;

  private final DataSource source;

  /** What has the address: the pool itself, or HikariCP's in it. */
  private final DataSource inner;

  private final @Nullable String url;

  private JdbcPool(DataSource source, DataSource inner, Store store) {
    this.store = store;
    this.source = source;
    this.inner = inner;
    this.url = text("jdbcUrl", "url", "URL");
  }

  private static @Nullable Class<?> found(String name) {
    return ClassUtils.isPresent(name, CLASSES) ? ClassUtils.resolveClassName(name, CLASSES) : null;
  }

  /** Returns a pool, as one of a store looks at it. */
  static JdbcPool of(DataSource source, Store store) {
    boolean isHikari = HAS_HIKARI && !isRouting(source) && Hikari.in(source) != null;
    DataSource inner = isHikari ? Objects.requireNonNull(Hikari.in(source)) : source;
    return new JdbcPool(source, inner, store);
  }

  /** What chooses among several pools is not to be named: the pools are, each with its server. */
  static boolean isRouting(DataSource source) {
    return ROUTING.stream().anyMatch(type -> within(source, type) != null);
  }

  /** Returns whether an application decides itself, for each connection, which pool it is of. */
  static boolean isRouter(DataSource source) {
    Class<?> router = ROUTING.get(0);
    return within(source, router) != null;
  }

  /** Returns what a decorator stands for; null for none of a type. */
  private static <T> @Nullable T within(DataSource source, Class<T> type) {
    try {
      if (type.isInstance(source)) {
        return type.cast(source);
      }
      return source.isWrapperFor(type) ? source.unwrap(type) : null;
    } catch (SQLException | RuntimeException error) {
      return null;
    }
  }

  DataSource source() {
    return source;
  }

  /** Returns whether another data source decorates this one. */
  boolean isIn(DataSource decorator) {
    return within(decorator, inner.getClass()) == inner;
  }

  /** Returns whether it is one of the store; of one whose URL is not known only MySQL asks. */
  boolean mayBeOurs() {
    return url == null
        ? store == Store.MYSQL && (EMBEDDED == null || !EMBEDDED.isInstance(source))
        : Objects.requireNonNull(OURS.get(store)).matcher(url).matches();
  }

  /** Returns why no rule is for it, for people. */
  String described() {
    if (url == null) {
      return "its address cannot be found out: name its bean in antipode.mysql.pools or"
          + " antipode.postgresql.pools";
    }
    return places().isEmpty()
        ? "its URL names several servers: use one pool for each"
        : DatastoreRule.described(store, places(), schema());
  }

  /** Returns the address of its server; empty where it names several, or none that is known. */
  List<Place> places() {
    Matcher one = one();
    return one == null ? List.of() : List.of(Place.of(host(one), port(one)));
  }

  /** Returns the schema; empty for none. */
  String schema() {
    Matcher one = one();
    String schema = one == null ? null : one.group(4);
    return schema == null ? "" : schema;
  }

  /** Returns the URL as shims take it; null where it is not known. */
  @Nullable String url() {
    Matcher one = one();
    if (one == null) {
      return url;
    }
    String options = one.group(5) == null ? "" : one.group(5);
    String server = one.group(3) == null ? one.group(2) : one.group(2) + ":" + one.group(3);
    return "jdbc:" + one.group(1) + "://" + server + "/" + schema() + options;
  }

  private @Nullable Matcher one() {
    Matcher match = url == null || !mayBeOurs() ? null : ONE.matcher(url);
    return match != null && match.matches() ? match : null;
  }

  private static String host(Matcher one) {
    return one.group(2).replaceAll("[\\[\\]]", "");
  }

  private int port(Matcher one) {
    return one.group(3) == null
        ? Objects.requireNonNull(PORTS.get(store))
        : Integer.parseInt(one.group(3));
  }

  @Nullable String user() {
    return text("username", "user");
  }

  @Nullable String password() {
    return text("password");
  }

  private @Nullable String text(String... names) {
    BeanWrapper properties = PropertyAccessorFactory.forBeanPropertyAccess(inner);
    return Stream.of(names)
        .<@Nullable Object>map(name -> value(properties, name))
        .filter(String.class::isInstance)
        .map(String.class::cast)
        .findFirst()
        .orElse(null);
  }

  /** Returns a property of the pool; null where it does not say it. */
  private static @Nullable Object value(BeanWrapper properties, String name) {
    try {
      return properties.isReadableProperty(name) ? properties.getPropertyValue(name) : null;
    } catch (BeansException error) {
      return null;
    }
  }

  /** Lets connections to MySQL report their commits, where that can still be said. */
  void track() {
    if (HAS_HIKARI && url != null && url.startsWith("jdbc:mysql:")) {
      Hikari.track(inner);
    }
  }

  /** Returns whether they do; others are asked after each commit. */
  boolean isTracked() {
    return (url != null && url.contains(TRACKING + "=true"))
        || (HAS_HIKARI && Hikari.isTracked(inner));
  }

  /** What is known of pools of HikariCP, which are Boot's own, and may be decorated. */
  private static final class Hikari {
    static @Nullable DataSource in(DataSource source) {
      return within(source, HikariDataSource.class);
    }

    static void track(DataSource pool) {
      if (pool instanceof HikariDataSource hikari && !hikari.isRunning()) {
        hikari.getDataSourceProperties().putIfAbsent(TRACKING, "true");
      }
    }

    static boolean isTracked(DataSource pool) {
      return pool instanceof HikariDataSource hikari
          && "true".equals(String.valueOf(hikari.getDataSourceProperties().get(TRACKING)));
    }
  }
}
