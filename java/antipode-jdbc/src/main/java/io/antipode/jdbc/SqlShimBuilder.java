package io.antipode.jdbc;

import io.antipode.ConfigurationException;
import io.antipode.barrier.ShimBuilder;
import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Describes a shim of an SQL database.
 *
 * @param <B> the builder itself
 * @param <S> the shim that it makes
 */
public abstract class SqlShimBuilder<B extends SqlShimBuilder<B, S>, S extends SqlShim>
    extends ShimBuilder<B, S> {
  private static final Pattern FUNCTION =
      Pattern.compile("[\\w$]+(?:\\.[\\w$]+)?", Pattern.UNICODE_CHARACTER_CLASS);

  private final String url;
  private Duration timeout = Duration.ofSeconds(60);
  private @Nullable String user;
  private @Nullable String password;
  private boolean isStated;
  private Set<String> readonlyFunctions = Set.of();

  /**
   * Names the datastore and its server.
   *
   * @param datastore the name that every service spells alike
   * @param url of JDBC
   */
  protected SqlShimBuilder(String datastore, String url) {
    super(datastore);
    this.url = Objects.requireNonNull(url, "url");
  }

  /** Says who asks the server, where the URL does not. */
  public final B user(String user, String password) {
    this.user = user;
    this.password = password;
    return self();
  }

  /** Says after which reads and writes give the server up; after a minute by default. */
  public final B timeout(Duration timeout) {
    this.timeout = timeout;
    return self();
  }

  /**
   * States that all statements of a connection, of pools too, reach one server, whatever proxy or
   * pooler stands between. Else reads that have to wait are refused where one is noticed.
   */
  public final B oneServer() {
    this.isStated = true;
    return self();
  }

  /**
   * Declares functions that write nothing. After a statement that calls another one which is not
   * built in, the server is asked whether it wrote.
   *
   * @param names as statements have them, with a schema or without, in any case
   * @throws ConfigurationException if one is no name, as one in quotes is none
   */
  public final B readonlyFunctions(Set<String> names) {
    for (String name : names) {
      if (!FUNCTION.matcher(name).matches()) {
        throw new ConfigurationException(
            "readonlyFunctions are names, each name or schema.name without quotes: " + name);
      }
    }
    this.readonlyFunctions =
        names.stream()
            .map(name -> name.toLowerCase(Locale.ROOT))
            .collect(Collectors.toUnmodifiableSet());
    return self();
  }

  /** Returns the URL of the server. */
  protected final String url() {
    return url;
  }

  /** Returns who asks; null where the URL says it. */
  protected final @Nullable String user() {
    return user;
  }

  /** Returns that user's password; null where the URL says it. */
  protected final @Nullable String password() {
    return password;
  }

  final Duration timeout() {
    return timeout;
  }

  final boolean isStated() {
    return isStated;
  }

  /** Returns the functions that are declared to write nothing, in small letters. */
  protected final Set<String> readonlyFunctions() {
    return readonlyFunctions;
  }
}
