package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/**
 * Which datastore is at which address: {@code antipode.datastores}, or {@code ANTIPODE_DATASTORES}
 * as every language reads it.
 */
final class DatastoreRules {
  private static final String PROPERTY = "antipode.datastores";
  private static final String EXAMPLE = "posts=mysql://db:3306, feed=redis://cache:6379/0";
  private static final String SENTINEL = "redis+sentinel";

  /** What stands for the name in the entry of an address that is no datastore of ours. */
  private static final String NOT_OURS = "-";

  /**
   * Of stores that are Python's: their entries, in a variable that services share, are not read.
   */
  private static final Set<String> OTHERS = Set.of("stomp");

  private record Scheme(Store store, int port) {}

  private static final Map<String, Scheme> SCHEMES = new LinkedHashMap<>();

  static {
    SCHEMES.put("redis", new Scheme(Store.REDIS, 6379));
    SCHEMES.put("rediss", new Scheme(Store.REDIS, 6379));
    SCHEMES.put("valkey", new Scheme(Store.REDIS, 6379));
    SCHEMES.put("valkeys", new Scheme(Store.REDIS, 6379));
    SCHEMES.put("unix", new Scheme(Store.REDIS, 0));
    SCHEMES.put(SENTINEL, new Scheme(Store.REDIS, 0));
    SCHEMES.put("mysql", new Scheme(Store.MYSQL, 3306));
    SCHEMES.put("mariadb", new Scheme(Store.MYSQL, 3306));
    SCHEMES.put("postgresql", new Scheme(Store.POSTGRESQL, 5432));
    SCHEMES.put("postgres", new Scheme(Store.POSTGRESQL, 5432));
    SCHEMES.put("mongodb", new Scheme(Store.MONGODB, 27017));
    SCHEMES.put("mongodb+srv", new Scheme(Store.MONGODB, 0));
    SCHEMES.put("amqp", new Scheme(Store.RABBITMQ, 5672));
    SCHEMES.put("amqps", new Scheme(Store.RABBITMQ, 5671));
    SCHEMES.put("dynamodb", new Scheme(Store.DYNAMODB, 443));
    SCHEMES.put("s3", new Scheme(Store.S3, 443));
    SCHEMES.put("sns", new Scheme(Store.SNS, 443));
  }

  /** Where an entry begins: MongoDB's URLs have commas of their own. */
  private static final Pattern BEGINS =
      Pattern.compile("[,;\\s]+(?=[^\\s,;=:/?]+\\s*=\\s*[a-z][a-z0-9+]*://)");

  private static final Pattern ENTRY = Pattern.compile("([^\\s,;=:/?]+)\\s*=\\s*(\\S+)");
  private static final Pattern URL =
      Pattern.compile("([a-z][a-z0-9+]*)://([^/?#]*)([^?#]*)(?:\\?([^#]*))?(#.*)?");
  private static final Pattern HOST = Pattern.compile("(\\[[^]]+]|[^:\\[\\]]*)(?::(\\d{1,5}))?");

  /** What a list adds to the name of its property. */
  private static final Pattern INDEX = Pattern.compile("(?:\\[\\d+]|\\.\\d+)$");

  private final List<DatastoreRule> rules;

  private DatastoreRules(List<DatastoreRule> rules) {
    this.rules = rules;
  }

  /**
   * Returns the rules of an application: one text, or names with a URL or a list of several.
   *
   * @throws ConfigurationException if an entry is malformed, or two of them disagree
   */
  static DatastoreRules of(Environment environment) {
    Binder binder = Binder.get(environment);
    String text = binder.bind(PROPERTY, String.class).orElse(null);
    if (text != null) {
      return text.isBlank() ? new DatastoreRules(List.of()) : parsed(text);
    }
    List<DatastoreRule> found = new ArrayList<>();
    binder
        .bind(PROPERTY, Bindable.mapOf(String.class, String.class))
        .orElseGet(Map::of)
        .forEach((name, url) -> add(found, rule(INDEX.matcher(name).replaceFirst(""), url)));
    return new DatastoreRules(found);
  }

  /** Returns the rules of a text. */
  static DatastoreRules parsed(String text) {
    List<DatastoreRule> found = new ArrayList<>();
    for (String each : BEGINS.split(text.replaceAll("^[\\s,;]+|[\\s,;]+$", ""), -1)) {
      Matcher entry = ENTRY.matcher(each.strip());
      if (!entry.matches()) {
        throw refused(shown(each), "an entry is a name and a URL, as in " + EXAMPLE);
      }
      add(found, rule(entry.group(1), entry.group(2)));
    }
    return new DatastoreRules(found);
  }

  /** Returns whether a kind of store is among them. */
  boolean have(Store store) {
    return rules.stream().anyMatch(rule -> rule.store() == store);
  }

  /**
   * Returns the rule that names a client's datastore; null for none, and for what an entry says is
   * no datastore of the application's. One that names its database goes before others.
   *
   * @param places the client's addresses, any of which counts
   * @param database its number, schema or virtual host; null where that is not known
   */
  @Nullable DatastoreRule find(Store store, List<Place> places, @Nullable String database) {
    DatastoreRule found = null;
    for (DatastoreRule rule : rules) {
      boolean isThere = places.stream().anyMatch(place -> rule.isAt(store, place));
      if (isThere && rule.database() != null && rule.database().equals(database)) {
        return ofOurs(rule);
      }
      if (isThere && rule.database() == null && found == null) {
        found = rule;
      }
    }
    return ofOurs(found);
  }

  private static @Nullable DatastoreRule ofOurs(@Nullable DatastoreRule rule) {
    return rule == null || rule.datastore().equals(NOT_OURS) ? null : rule;
  }

  private static @Nullable DatastoreRule rule(String name, String url) {
    String shown = name + "=" + shown(url);
    if (name.isEmpty() || name.startsWith("@")) {
      throw refused(shown, "the name of a datastore is not empty and begins with no '@'");
    }
    Matcher parts = URL.matcher(url.strip());
    String scheme =
        parts.matches()
            ? parts.group(1).replaceFirst("^(mysql|mariadb|postgresql)\\+.*", "$1")
            : "";
    if (OTHERS.contains(scheme)) {
      return null;
    }
    Scheme known = SCHEMES.get(scheme);
    if (known == null) {
      String schemes = String.join("://, ", SCHEMES.keySet());
      throw refused(shown, "its URL begins with one of " + schemes + "://");
    }
    Map<String, String> options = options(parts.group(4));
    String socket =
        options.getOrDefault(
            known.store() == Store.POSTGRESQL ? "host" : "unix_socket",
            scheme.equals("unix") ? parts.group(3) : "");
    if (parts.group(5) != null || (parts.group(2).isEmpty() && socket.isEmpty())) {
      throw refused(shown, "its URL names no host");
    }
    requireKnown(shown, known.store(), options);
    String path =
        scheme.equals("unix") || parts.group(3).isEmpty() ? "" : parts.group(3).substring(1);
    String role = chosen(shown, options, "reads_from", List.of("primary", "replica"));
    String oneServer = chosen(shown, options, "one_server", List.of("true", "false"));
    String receipts = chosen(shown, options, "receipts", List.of("true", "false"));
    return new DatastoreRule(
        name,
        known.store(),
        socket.isEmpty()
            ? places(shown, parts.group(2), scheme, known)
            : List.of(new Place(socket, 0)),
        path.isEmpty() ? null : decoded(path),
        role == null ? null : role.equals("replica") ? ReadsFrom.REPLICA : ReadsFrom.PRIMARY,
        oneServer == null ? null : Boolean.valueOf(oneServer),
        "true".equals(receipts));
  }

  private static Map<String, String> options(@Nullable String query) {
    Map<String, String> options = new LinkedHashMap<>();
    for (String each : query == null || query.isEmpty() ? new String[0] : query.split("&", -1)) {
      int sign = each.indexOf('=');
      String name = sign < 0 ? each : each.substring(0, sign);
      options.put(decoded(name), sign < 0 ? "" : decoded(each.substring(sign + 1)));
    }
    return options;
  }

  private static void requireKnown(String shown, Store store, Map<String, String> options) {
    for (String option : options.keySet()) {
      if (!store.options().contains(option)) {
        String known = String.join(", ", store.options());
        throw refused(shown, "it takes " + known + " after '?', not '" + option + "'");
      }
    }
  }

  private static @Nullable String chosen(
      String shown, Map<String, String> options, String option, List<String> allowed) {
    String value = options.get(option);
    if (value != null && !allowed.contains(value)) {
      throw refused(
          shown, option + " is " + String.join(" or ", allowed) + ", not '" + value + "'");
    }
    return value;
  }

  private static List<Place> places(String shown, String authority, String scheme, Scheme known) {
    String[] hosts = authority.substring(authority.lastIndexOf('@') + 1).split(",", -1);
    if (hosts.length > 1 && known.store() != Store.MONGODB) {
      throw refused(shown, "one host an entry: repeat the name for others, as in a=URL, a=URL");
    }
    return Arrays.stream(hosts).map(host -> place(shown, decoded(host), scheme, known)).toList();
  }

  private static Place place(String shown, String host, String scheme, Scheme known) {
    if (scheme.equals(SENTINEL)) {
      return Place.ofSentinels(host);
    }
    Matcher match = HOST.matcher(host);
    if (!match.matches()) {
      throw refused(shown, "'" + host + "' is no host with a port");
    }
    int port = match.group(2) == null ? known.port() : Integer.parseInt(match.group(2));
    return Place.of(match.group(1).replaceAll("[\\[\\]]", ""), port);
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  /** Adds a rule once; no two say different things of one address. */
  private static void add(List<DatastoreRule> rules, @Nullable DatastoreRule rule) {
    if (rule == null) {
      return;
    }
    for (DatastoreRule other : rules) {
      Place common = common(rule, other);
      if (common == null || rule.equals(other)) {
        continue;
      }
      String where = DatastoreRule.described(rule.store(), List.of(common), rule.database());
      throw rule.datastore().equals(other.datastore())
          ? refused(rule.datastore(), where + " is named twice, with different options")
          : refused(
              other.datastore() + " and " + rule.datastore(),
              where + " has two names: give the one that every service uses");
    }
    if (!rules.contains(rule)) {
      rules.add(rule);
    }
  }

  private static @Nullable Place common(DatastoreRule rule, DatastoreRule other) {
    boolean isOneStore =
        rule.store() == other.store() && Objects.equals(rule.database(), other.database());
    return rule.places().stream()
        .filter(place -> isOneStore && other.places().contains(place))
        .findFirst()
        .orElse(null);
  }

  /** Returns a text without what may be a password. */
  private static String shown(String text) {
    return text.replaceAll("//[^/@\\s]*@", "//***@");
  }

  private static ConfigurationException refused(String shown, String why) {
    return new ConfigurationException(
        PROPERTY
            + " has '"
            + shown
            + "': "
            + why
            + " (the property or the variable ANTIPODE_DATASTORES)");
  }
}
