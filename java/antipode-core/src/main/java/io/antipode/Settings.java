package io.antipode;

import io.antipode.request.Observers;
import io.antipode.runtime.EgressHosts;
import io.antipode.runtime.PeerNames;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The settings of this process: as {@link #configure configured}, else of the system property
 * {@code antipode.max-timeout} and the like, else of the environment variable {@code
 * ANTIPODE_MAX_TIMEOUT} and the like, else the default.
 *
 * <p>A value never changes; {@code with} methods return another one.
 */
public final class Settings {
  private static final int MIN_LINEAGE_BYTES = 64;
  private static final int MAX_LINEAGE_BYTES = 4_096;
  private static final Duration WEEK = Duration.ofDays(7);
  private static final Settings DEFAULTS = new Settings(new Draft());
  private static final AtomicReference<@Nullable Settings> CURRENT = new AtomicReference<>();

  private final Draft values;

  private Settings(Draft values) {
    this.values = values;
  }

  /**
   * Returns the settings in force. Properties and environment are read at the first call.
   *
   * @throws ConfigurationException if one of them is outside what its setting takes
   */
  public static Settings current() {
    Settings held = CURRENT.get();
    if (held != null) {
      return held;
    }
    Settings read = read(System::getProperty, System::getenv);
    if (CURRENT.compareAndSet(null, read)) {
      Observers.follow();
    }
    return current();
  }

  /** Returns the defaults, whatever the environment says. */
  public static Settings defaults() {
    return DEFAULTS;
  }

  /**
   * Changes the settings of this process; what the change leaves alone stays as it is.
   *
   * <pre>{@code
   * Settings.configure(settings -> settings.withMaxTimeout(Duration.ofSeconds(5)));
   * }</pre>
   *
   * @return the settings as they were before
   * @throws ConfigurationException if a value is outside what its setting takes; nothing changes
   */
  public static Settings configure(UnaryOperator<Settings> change) {
    while (true) {
      Settings held = current();
      if (CURRENT.compareAndSet(held, Objects.requireNonNull(change.apply(held), "settings"))) {
        Observers.follow();
        return held;
      }
    }
  }

  /** Returns what barriers do; default {@link Mode#ENFORCE}. */
  public Mode mode() {
    return values.mode;
  }

  /** Returns the name of this region, for people and reports; null where it has none. */
  public @Nullable String region() {
    return values.region;
  }

  /** Returns where a dry run writes its records; null where it writes none. */
  public @Nullable Path dryRunDir() {
    return values.dryRunDir;
  }

  /** Returns the longest any barrier waits, whatever its caller says; default 30 seconds. */
  public Duration maxTimeout() {
    return values.maxTimeout;
  }

  /** Returns how many bytes the baggage member may have, {@code antipode=} included. */
  public int maxLineageBytes() {
    return values.maxLineageBytes;
  }

  /** Returns after how long a dependency on an unknown log counts as aged; default 7 days. */
  public Duration horizon() {
    return values.horizon;
  }

  /** Returns the longest that a promise may live; default 7 days. */
  public Duration maxPromise() {
    return values.maxPromise;
  }

  /**
   * Returns what a barrier does about what it cannot decide; null where only datastores that this
   * process has no shim for are reported.
   */
  public @Nullable Policy onUnknown() {
    return values.onUnknown;
  }

  /** Returns what a barrier does about an incomplete lineage; default {@link Policy#RAISE}. */
  public Policy onIncomplete() {
    return values.onIncomplete;
  }

  /**
   * Returns where reads wait; default {@link ReadBarriers#EXPLICIT}. A shim's own word and a block
   * ({@link io.antipode.barrier.Barriers#explicit}) go before it.
   */
  public ReadBarriers barriers() {
    return values.barriers;
  }

  /**
   * Returns for how long automatic barriers may hold the reads of one request back, all of them
   * together; default 1 second.
   */
  public Duration autoTimeout() {
    return values.autoTimeout;
  }

  /** Returns for how long a session cookie carries what a request wrote; default 60 seconds. */
  public Duration sessionMaxAge() {
    return values.sessionMaxAge;
  }

  /**
   * Returns what such a read does whose time is up, or of which waiting makes no sense; default
   * {@link OnStale#SERVE}.
   */
  public OnStale onStale() {
    return values.onStale;
  }

  /**
   * Returns what happens without a scope; null where writes are reported, and barriers and checks
   * raise, since they would wait for nothing.
   */
  public @Nullable Policy onUnscoped() {
    return values.onUnscoped;
  }

  /** Returns the datastores that may be named outside of this process; null for all. */
  public @Nullable Set<String> egress() {
    return values.egress;
  }

  /** Returns the hosts to which clients send lineages; null for all. */
  public @Nullable Set<String> egressHosts() {
    return values.egressHosts;
  }

  /** Returns, by host and path, whether those who are called answer with lineages. */
  public Map<String, PeerAnswers> peers() {
    return values.peers;
  }

  /** Returns the application's packages, whose lines logs name; null for any but libraries'. */
  public @Nullable Set<String> appPackages() {
    return values.appPackages;
  }

  /** Returns these settings with another mode. */
  public Settings withMode(Mode mode) {
    return with(draft -> draft.mode = Objects.requireNonNull(mode, "mode"));
  }

  /** Returns these settings with another name of this region, or none. */
  public Settings withRegion(@Nullable String region) {
    return with(draft -> draft.region = region);
  }

  /** Returns these settings with another directory for the records of a dry run, or none. */
  public Settings withDryRunDir(@Nullable Path directory) {
    return with(draft -> draft.dryRunDir = directory);
  }

  /**
   * Returns these settings with another limit of all timeouts.
   *
   * @throws ConfigurationException if it is not positive
   */
  public Settings withMaxTimeout(Duration timeout) {
    return with(draft -> draft.maxTimeout = positive("max_timeout", timeout));
  }

  /**
   * Returns these settings with another size of the baggage member.
   *
   * @param bytes 64 to 4,096
   * @throws ConfigurationException if it is another number
   */
  public Settings withMaxLineageBytes(int bytes) {
    if (bytes < MIN_LINEAGE_BYTES || bytes > MAX_LINEAGE_BYTES) {
      throw refused(
          "max_lineage_bytes",
          bytes,
          "a number of bytes from " + MIN_LINEAGE_BYTES + " to " + MAX_LINEAGE_BYTES);
    }
    return with(draft -> draft.maxLineageBytes = bytes);
  }

  /**
   * Returns these settings with another horizon.
   *
   * @throws ConfigurationException if it is not positive
   */
  public Settings withHorizon(Duration horizon) {
    return with(draft -> draft.horizon = positive("horizon", horizon));
  }

  /**
   * Returns these settings with another limit of promises.
   *
   * @throws ConfigurationException if it is not positive
   */
  public Settings withMaxPromise(Duration maxPromise) {
    return with(draft -> draft.maxPromise = positive("max_promise", maxPromise));
  }

  /** Returns these settings with another policy for what cannot be decided. */
  public Settings withOnUnknown(@Nullable Policy policy) {
    return with(draft -> draft.onUnknown = policy);
  }

  /** Returns these settings with another policy for incomplete lineages. */
  public Settings withOnIncomplete(Policy policy) {
    return with(draft -> draft.onIncomplete = Objects.requireNonNull(policy, "policy"));
  }

  /** Returns these settings with reads that wait automatically, or do not. */
  public Settings withBarriers(ReadBarriers barriers) {
    return with(draft -> draft.barriers = Objects.requireNonNull(barriers, "barriers"));
  }

  /**
   * Returns these settings with another time for the automatic barriers of a request.
   *
   * @throws ConfigurationException if it is negative
   */
  public Settings withAutoTimeout(Duration timeout) {
    if (timeout.isNegative()) {
      throw refused("auto_timeout", timeout, "a time that is not negative");
    }
    return with(draft -> draft.autoTimeout = timeout);
  }

  /**
   * Returns these settings with another age of session cookies, longer than replication ever lags.
   *
   * @throws ConfigurationException if it is not positive
   */
  public Settings withSessionMaxAge(Duration age) {
    return with(draft -> draft.sessionMaxAge = positive("session_max_age", age));
  }

  /** Returns these settings with another way of reads that wait in vain. */
  public Settings withOnStale(OnStale onStale) {
    return with(draft -> draft.onStale = Objects.requireNonNull(onStale, "onStale"));
  }

  /** Returns these settings with another policy for what finds no scope. */
  public Settings withOnUnscoped(@Nullable Policy policy) {
    return with(draft -> draft.onUnscoped = policy);
  }

  /** Returns these settings with other datastores that may be named outside; null for all. */
  public Settings withEgress(@Nullable Collection<String> datastores) {
    return with(draft -> draft.egress = copy(datastores));
  }

  /**
   * Returns these settings with other hosts that get lineages; null for all.
   *
   * @param hosts names or addresses, or {@code *.} and a domain, each with a port or without
   * @throws ConfigurationException if one of them names no host
   */
  public Settings withEgressHosts(@Nullable Collection<String> hosts) {
    if (hosts != null) {
      hosts.stream()
          .filter(EgressHosts::isRefused)
          .findFirst()
          .ifPresent(
              host -> {
                throw refused(
                    "egress_hosts", host, "of names or addresses of hosts, without scheme or path");
              });
    }
    return with(draft -> draft.egressHosts = copy(hosts));
  }

  /**
   * Returns these settings with other words on who answers with lineages.
   *
   * @param peers by host as in {@code egress_hosts}, with the path below which it holds or without
   * @throws ConfigurationException if one of them names no host
   */
  public Settings withPeers(Map<String, PeerAnswers> peers) {
    peers.keySet().stream()
        .filter(PeerNames::isRefused)
        .findFirst()
        .ifPresent(
            entry -> {
              throw refused(
                  "peers", entry, "of hosts, without scheme, each with a path or without");
            });
    return with(draft -> draft.peers = Map.copyOf(peers));
  }

  /** Returns these settings with other packages of the application; null for any but libraries'. */
  public Settings withAppPackages(@Nullable Collection<String> packages) {
    return with(draft -> draft.appPackages = copy(packages));
  }

  private interface Change {
    void apply(Draft draft);
  }

  private Settings with(Change change) {
    Draft draft = new Draft(values);
    change.apply(draft);
    return new Settings(draft);
  }

  private static @Nullable Set<String> copy(@Nullable Collection<String> names) {
    return names == null ? null : Set.copyOf(names);
  }

  private static Duration positive(String name, Duration value) {
    if (value.isZero() || value.isNegative()) {
      throw refused(name, value, "a positive time");
    }
    return value;
  }

  private static ConfigurationException refused(String name, Object value, String wanted) {
    return new ConfigurationException(
        name + " must be " + wanted + ", not " + value + sources(name));
  }

  private static String sources(String name) {
    return " (Settings.configure, the system property "
        + property(name)
        + " or the environment variable "
        + variable(name)
        + ")";
  }

  // Properties and environment.

  static Settings read(
      Function<String, @Nullable String> properties,
      Function<String, @Nullable String> environment) {
    Settings settings = DEFAULTS;
    for (Map.Entry<String, Reader> reader : READERS.entrySet()) {
      String name = reader.getKey();
      String text = properties.apply(property(name));
      if (text == null || text.isBlank()) {
        text = environment.apply(variable(name));
      }
      if (text != null && !text.isBlank()) {
        settings = reader.getValue().read(settings, name, text.strip());
      }
    }
    return settings;
  }

  /**
   * Returns these settings with one that is given as text, as in the environment.
   *
   * @param name as in the reference, such as {@code max_timeout}
   * @throws ConfigurationException if the text is not what the setting takes
   */
  public Settings with(String name, String text) {
    Reader reader = READERS.get(name);
    if (reader == null) {
      throw new ConfigurationException("there is no setting " + name);
    }
    return reader.read(this, name, text.strip());
  }

  private static String property(String name) {
    return "antipode." + name.replace('_', '-');
  }

  private static String variable(String name) {
    return "ANTIPODE_" + name.toUpperCase(Locale.ROOT);
  }

  private interface Reader {
    Settings read(Settings settings, String name, String text);
  }

  /** How the text of each setting is read, by its name. */
  private static final Map<String, Reader> READERS =
      Map.ofEntries(
          Map.entry("mode", (held, name, text) -> held.withMode(word(Mode.class, name, text))),
          Map.entry("region", (held, name, text) -> held.withRegion(text)),
          Map.entry("dry_run_dir", (held, name, text) -> held.withDryRunDir(Path.of(text))),
          Map.entry("max_timeout", (held, name, text) -> held.withMaxTimeout(span(name, text))),
          Map.entry(
              "max_lineage_bytes",
              (held, name, text) -> held.withMaxLineageBytes(number(name, text))),
          Map.entry("horizon", (held, name, text) -> held.withHorizon(span(name, text))),
          Map.entry("max_promise", (held, name, text) -> held.withMaxPromise(span(name, text))),
          Map.entry("on_unknown", (held, name, text) -> held.withOnUnknown(policy(name, text))),
          Map.entry(
              "on_incomplete", (held, name, text) -> held.withOnIncomplete(policy(name, text))),
          Map.entry(
              "barriers",
              (held, name, text) -> held.withBarriers(word(ReadBarriers.class, name, text))),
          Map.entry("auto_timeout", (held, name, text) -> held.withAutoTimeout(span(name, text))),
          Map.entry(
              "session_max_age", (held, name, text) -> held.withSessionMaxAge(span(name, text))),
          Map.entry(
              "on_stale", (held, name, text) -> held.withOnStale(word(OnStale.class, name, text))),
          Map.entry("on_unscoped", (held, name, text) -> held.withOnUnscoped(policy(name, text))),
          Map.entry("egress", (held, name, text) -> held.withEgress(names(text))),
          Map.entry("egress_hosts", (held, name, text) -> held.withEgressHosts(names(text))),
          Map.entry("peers", (held, name, text) -> held.withPeers(peers(name, text))),
          Map.entry("app_packages", (held, name, text) -> held.withAppPackages(names(text))));

  private static final Pattern SPAN = Pattern.compile("(\\d{1,12}(?:\\.\\d{1,9})?)([dhms]?)");

  private static Duration span(String name, String text) {
    Matcher parts = SPAN.matcher(text);
    if (!parts.matches()) {
      throw refused(name, text, "like 7d, 12h or 3600");
    }
    int unitS =
        switch (parts.group(2)) {
          case "d" -> 86_400;
          case "h" -> 3_600;
          case "m" -> 60;
          default -> 1;
        };
    return Duration.ofNanos(Math.round(Double.parseDouble(parts.group(1)) * unitS * 1e9));
  }

  private static int number(String name, String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException noNumber) {
      throw refused(name, text, "a number");
    }
  }

  private static Policy policy(String name, String text) {
    return word(Policy.class, name, text);
  }

  private static <E extends Enum<E>> E word(Class<E> type, String name, String text) {
    for (E value : type.getEnumConstants()) {
      if (spelled(value).equals(text)) {
        return value;
      }
    }
    String words =
        Arrays.stream(type.getEnumConstants())
            .map(Settings::spelled)
            .collect(Collectors.joining(" or "));
    throw refused(name, text, words);
  }

  private static String spelled(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  private static Set<String> names(String text) {
    return Arrays.stream(text.split(",", -1))
        .map(String::strip)
        .filter(name -> !name.isEmpty())
        .collect(Collectors.toUnmodifiableSet());
  }

  private static Map<String, PeerAnswers> peers(String name, String text) {
    Map<String, PeerAnswers> found = new LinkedHashMap<>();
    for (String each : names(text)) {
      int sign = each.lastIndexOf('=');
      if (sign < 0) {
        throw refused(name, each, "like orders.internal=always");
      }
      found.put(
          each.substring(0, sign).strip(),
          word(PeerAnswers.class, name, each.substring(sign + 1).strip()));
    }
    return found;
  }

  /** The values, while they are put together. */
  private static final class Draft {
    private Mode mode = Mode.ENFORCE;
    private @Nullable String region;
    private @Nullable Path dryRunDir;
    private Duration maxTimeout = Duration.ofSeconds(30);
    private int maxLineageBytes = 1_024;
    private Duration horizon = WEEK;
    private Duration maxPromise = WEEK;
    private @Nullable Policy onUnknown;
    private Policy onIncomplete = Policy.RAISE;
    private ReadBarriers barriers = ReadBarriers.EXPLICIT;
    private Duration autoTimeout = Duration.ofSeconds(1);
    private Duration sessionMaxAge = Duration.ofSeconds(60);
    private OnStale onStale = OnStale.SERVE;
    private @Nullable Policy onUnscoped;
    private @Nullable Set<String> egress;
    private @Nullable Set<String> egressHosts;
    private Map<String, PeerAnswers> peers = Map.of();
    private @Nullable Set<String> appPackages;

    Draft() {}

    Draft(Draft other) {
      mode = other.mode;
      region = other.region;
      dryRunDir = other.dryRunDir;
      maxTimeout = other.maxTimeout;
      maxLineageBytes = other.maxLineageBytes;
      horizon = other.horizon;
      maxPromise = other.maxPromise;
      onUnknown = other.onUnknown;
      onIncomplete = other.onIncomplete;
      barriers = other.barriers;
      autoTimeout = other.autoTimeout;
      sessionMaxAge = other.sessionMaxAge;
      onStale = other.onStale;
      onUnscoped = other.onUnscoped;
      egress = other.egress;
      egressHosts = other.egressHosts;
      peers = other.peers;
      appPackages = other.appPackages;
    }
  }
}
