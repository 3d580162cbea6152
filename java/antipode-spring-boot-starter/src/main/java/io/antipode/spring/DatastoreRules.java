package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.barrier.ReadsFrom;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.MatchResult;
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
  static final int SENTINEL_PORT = 26379;
  private static final int MOST_PORT = 65535;
  private static final int MOST_SHOWN = 200;
  private static final int MOST_SAID = 500;

  /** Whose clients are of a region, in which they name tables, buckets and topics. */
  private static final Set<Store> OF_REGIONS = Set.of(Store.DYNAMODB, Store.S3, Store.SNS);

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
      Pattern.compile("(?<![,;\\s])[,;\\s]+(?=[^\\s,;=:/?]+\\s*=\\s*[a-z][a-z0-9+]*://)");

  private static final Pattern ENTRY = Pattern.compile("([^\\s,;=:/?]+)\\s*=\\s*(\\S+)");
  private static final Pattern URL =
      Pattern.compile("([a-z][a-z0-9+]*)://([^/?#]*)([^?#]*)(?:\\?([^#]*))?(#.*)?");
  private static final Pattern HOST = Pattern.compile("(\\[[^]]+]|[^:\\[\\]]*)(?::(\\d{1,5}))?");

  private static final Pattern OPTION = Pattern.compile("[?&]([^=&?\\s]*)=[^&\\s]*");

  /** Where a URL has no port after a host, but perhaps a password that was cut. */
  private static final Pattern NO_PORT =
      Pattern.compile("(//[^:/?#\\[\\s]*):(?!\\d{1,5}(?:[/?,]|$)).*", Pattern.DOTALL);

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
    Agreeing found = new Agreeing();
    binder
        .bind(PROPERTY, Bindable.mapOf(String.class, String.class))
        .orElseGet(Map::of)
        .forEach((name, url) -> found.add(rule(INDEX.matcher(name).replaceFirst(""), url)));
    return found.read();
  }

  /** Returns the rules of a text. */
  static DatastoreRules parsed(String text) {
    Agreeing found = new Agreeing();
    for (String each : BEGINS.split(trimmed(text), -1)) {
      Matcher entry = ENTRY.matcher(each.strip());
      if (!entry.matches()) {
        throw refused(shown(each), "an entry is a name and a URL, as in " + EXAMPLE);
      }
      found.add(rule(entry.group(1), entry.group(2)));
    }
    return found.read();
  }

  /** Returns a text without what may stand around entries. */
  private static String trimmed(String text) {
    int start = 0;
    int end = text.length();
    while (start < end && isBetween(text.charAt(start))) {
      start++;
    }
    while (end > start && isBetween(text.charAt(end - 1))) {
      end--;
    }
    return text.substring(start, end);
  }

  private static boolean isBetween(char each) {
    return each == ',' || each == ';' || Character.isWhitespace(each);
  }

  /** Returns whether a kind of store is among them. */
  boolean have(Store store) {
    return rules.stream().anyMatch(rule -> rule.store() == store);
  }

  /**
   * Returns the rule that names a client's datastore; null for none, and for what an entry says is
   * no datastore of the application's. One that names its database goes before others.
   *
   * @param places the client's addresses, any of which counts, the most exact one first
   * @param database its number, schema or virtual host; null where that is not known
   */
  @Nullable DatastoreRule find(Store store, List<Place> places, @Nullable String database) {
    DatastoreRule found = null;
    for (Place place : places) {
      for (DatastoreRule rule : rules) {
        boolean isThere = rule.isAt(store, place);
        if (isThere && rule.database() != null && rule.database().equals(database)) {
          return ofOurs(rule);
        }
        if (isThere && rule.database() == null && found == null) {
          found = rule;
        }
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
    if (parts.group(3).contains("@") || String.valueOf(parts.group(4)).contains("@")) {
      throw refused(shown, "in a user or a password, write / as %2F, ? as %3F, # as %23, @ as %40");
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
    if (!socket.isEmpty() && !socket.startsWith("/") && !socket.startsWith("@")) {
      throw refused(shown, "the path of a socket begins with '/'; a host stands after '//'");
    }
    String path =
        scheme.equals("unix") || parts.group(3).isEmpty() ? "" : parts.group(3).substring(1);
    List<Place> places;
    if (!socket.isEmpty()) {
      places = List.of(new Place(socket, 0));
    } else if (scheme.equals(SENTINEL) && isService(path)) {
      int end = path.indexOf('/');
      String service = decoded(end < 0 ? path : path.substring(0, end));
      places = sentinels(shown, parts.group(2), service);
      path = end < 0 ? "" : path.substring(end + 1);
    } else {
      places = places(shown, parts.group(2), scheme, known);
    }
    requireMatchable(shown, known.store(), decoded(path));
    String both = chosen(shown, options, "both", List.of("true", "false"));
    if ("true".equals(both) && options.containsKey("reads_from")) {
      throw refused(shown, "both=true says where it is read: take reads_from out");
    }
    String role = chosen(shown, options, "reads_from", List.of("primary", "replica"));
    String oneServer = chosen(shown, options, "one_server", List.of("true", "false"));
    String receipts = chosen(shown, options, "receipts", List.of("true", "false"));
    return new DatastoreRule(
        name,
        known.store(),
        places,
        path.isEmpty() ? null : decoded(path),
        readsFrom(role, "true".equals(both)),
        oneServer == null ? null : Boolean.valueOf(oneServer),
        "true".equals(receipts));
  }

  /** Returns who is read: one server stands for both, and a dry run judges it as a replica. */
  private static @Nullable ReadsFrom readsFrom(@Nullable String role, boolean isBoth) {
    if (isBoth) {
      return Settings.current().mode() == Mode.DRY_RUN ? ReadsFrom.REPLICA : null;
    }
    return role == null ? null : role.equals("replica") ? ReadsFrom.REPLICA : ReadsFrom.PRIMARY;
  }

  /** Returns whether a path names a service that Sentinels watch, and is no database's number. */
  private static boolean isService(String path) {
    return !path.isEmpty() && !path.matches("\\d*(?:/.*)?");
  }

  private static List<Place> sentinels(String shown, String authority, String service) {
    String hosts = authority.substring(authority.lastIndexOf('@') + 1);
    Scheme known = new Scheme(Store.REDIS, SENTINEL_PORT);
    return Arrays.stream(hosts.split(",", -1))
        .map(host -> Place.ofSentinels(service, place(shown, decoded(host), "", known)))
        .toList();
  }

  /** Refuses a database that no client of a store is of. */
  private static void requireMatchable(String shown, Store store, String database) {
    if (database.isEmpty()) {
      return;
    }
    if (store == Store.MONGODB) {
      throw refused(
          shown, "a rule of mongodb is for all databases: take '/" + database + "' off its URL");
    }
    if (OF_REGIONS.contains(store)) {
      throw refused(shown, "its URL is that of a region or of an endpoint, without a path");
    }
    if (store == Store.REDIS && !database.matches("0|[1-9]\\d{0,8}")) {
      throw refused(shown, "databases of Redis have numbers, as in /0, not '" + database + "'");
    }
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
    if (!match.matches() && host.chars().filter(each -> each == ':').count() > 1) {
      throw refused(shown, "an address of IPv6 stands in brackets, as in [2001:db8::1]:6379");
    }
    if (!match.matches()) {
      throw refused(shown, "what stands for its host is no host with a port");
    }
    int port = match.group(2) == null ? known.port() : Integer.parseInt(match.group(2));
    if (match.group(2) != null && (known.port() == 0 || port == 0 || port > MOST_PORT)) {
      throw refused(
          shown, known.port() == 0 ? "its URL takes no port" : "a port is 1 to " + MOST_PORT);
    }
    return Place.of(match.group(1).replaceAll("[\\[\\]]", ""), port);
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  /** The rules of a text, each once; no two say different things of one address. */
  private static final class Agreeing {
    private final Set<DatastoreRule> rules = new LinkedHashSet<>();
    private final Map<Spot, DatastoreRule> held = new HashMap<>();

    private record Spot(Store store, @Nullable String database, Place place) {}

    void add(@Nullable DatastoreRule rule) {
      if (rule == null) {
        return;
      }
      for (Place place : rule.places()) {
        DatastoreRule other =
            held.putIfAbsent(new Spot(rule.store(), rule.database(), place), rule);
        if (other != null && !rule.equals(other)) {
          throw disagreeing(other, rule, place);
        }
      }
      boolean unused = rules.add(rule);
    }

    private static ConfigurationException disagreeing(
        DatastoreRule one, DatastoreRule other, Place common) {
      String where = DatastoreRule.described(other.store(), List.of(common), other.database());
      String names = one.datastore() + " and " + other.datastore();
      if (other.datastore().equals(NOT_OURS) != one.datastore().equals(NOT_OURS)) {
        return refused(
            names, where + " is a datastore and is none ('-'): take one of the entries out");
      }
      return other.datastore().equals(one.datastore())
          ? refused(other.datastore(), where + " is named twice, with different options")
          : refused(names, where + " has two names: give the one that every service uses");
    }

    DatastoreRules read() {
      return new DatastoreRules(List.copyOf(rules));
    }
  }

  /** Returns a text without what may be a password, whatever signs it has in it. */
  private static String shown(String text) {
    int at = text.lastIndexOf('@');
    int authority = text.indexOf("//");
    String hidden = text;
    if (at >= 0) {
      String before = authority < 0 || authority > at ? "" : text.substring(0, authority + 2);
      hidden = before + "***" + text.substring(at);
    }
    hidden = NO_PORT.matcher(hidden).replaceAll("$1:***");
    hidden = OPTION.matcher(hidden).replaceAll(DatastoreRules::shownOption);
    return cut(hidden, MOST_SHOWN);
  }

  private static String cut(String text, int most) {
    return text.length() <= most ? text : text.substring(0, most) + "...";
  }

  /** Returns an option as it stands, if it is one that is known; else without its value. */
  private static String shownOption(MatchResult option) {
    boolean isKnown =
        Arrays.stream(Store.values()).anyMatch(each -> each.options().contains(option.group(1)));
    String whole = option.group();
    String shown = isKnown ? whole : whole.substring(0, whole.indexOf('=')) + "=***";
    return Matcher.quoteReplacement(shown);
  }

  private static ConfigurationException refused(String shown, String why) {
    return new ConfigurationException(
        PROPERTY
            + " has '"
            + shown
            + "': "
            + cut(why, MOST_SAID)
            + " (the property or the variable ANTIPODE_DATASTORES)");
  }
}
