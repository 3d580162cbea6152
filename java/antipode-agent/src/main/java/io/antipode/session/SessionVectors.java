package io.antipode.session;

import io.antipode.request.Scope;
import io.antipode.runtime.Time;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Session cookies whose signature leaves their content legible, for vectors. */
public final class SessionVectors {
  private static final int COOKIE_BYTES = 1_024;
  private static final String NAME = "antipode";

  private final String signature;
  private final SessionCookie cookie;

  /** Makes a cookie with room for a content of so many bytes. */
  public SessionVectors(int room) {
    signature = "." + "s".repeat(COOKIE_BYTES - NAME.length() - "=".length() - room - ".".length());
    Signer legible =
        new Signer() {
          @Override
          public String sign(String content) {
            return content + signature;
          }

          @Override
          public @Nullable String unsign(String value) {
            return value.endsWith(signature) ? content(value) : null;
          }
        };
    cookie = new SessionCookie(legible, legible, NAME, "/", null, null);
  }

  /** Returns the content of a token that is made now. */
  public String token() {
    return content(cookie.token());
  }

  /** Returns the content of a cookie's or a token's value. */
  public String content(String value) {
    return value.isEmpty() ? "" : value.substring(0, value.length() - signature.length());
  }

  /**
   * Returns the sessionRequest of a request with cookies and tokens of these contents; null for one
   * that is forged.
   *
   * @param others what follows the cookies in the header
   */
  public SessionRequest begin(
      Scope scope,
      List<@Nullable String> contents,
      List<String> others,
      List<@Nullable String> tokens) {
    List<String> pairs = new ArrayList<>();
    for (String content : contents) {
      pairs.add(NAME + "=" + value(content));
    }
    pairs.addAll(others);
    List<String> headers = pairs.isEmpty() ? List.of() : List.of(String.join("; ", pairs));
    String events = tokens.stream().map(this::value).collect(Collectors.joining(", "));
    return cookie.begin(scope, headers, List.of(events), false);
  }

  private String value(@Nullable String content) {
    return content == null ? "forged" : content + signature;
  }

  /** Runs something at a Unix second. */
  public static <T> T at(long second, Supplier<T> action) {
    var held = Time.exchange(() -> Instant.ofEpochSecond(second));
    try {
      return action.get();
    } finally {
      Time.exchange(held);
    }
  }

  /** Returns a content, signed by the first of some keys, as a cookie's or a token's. */
  public static String sign(List<String> keys, boolean isToken, String content) {
    return of(keys, isToken).sign(content);
  }

  /** Returns the content of a value that one of some keys signed so; null of any other. */
  public static @Nullable String unsign(List<String> keys, boolean isToken, String value) {
    return of(keys, isToken).unsign(value);
  }

  private static Keys of(List<String> keys, boolean isToken) {
    return new Keys(keys, isToken ? Keys.TOKEN : Keys.COOKIE);
  }
}
