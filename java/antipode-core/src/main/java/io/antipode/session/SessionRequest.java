package io.antipode.session;

import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/** One request of a user, from its cookies to its response. */
public final class SessionRequest {
  private final SessionCookie cookie;
  private final Scope scope;
  private final boolean isWithout;
  private final List<Part> parts;
  private final boolean onTls;

  /**
   * What a response does to the cookie.
   *
   * @param value signed; empty to remove it
   * @param setCookie the value of its {@code Set-Cookie} header
   * @param cacheControl what it must say to caches
   */
  public record Change(String value, String setCookie, String cacheControl) {}

  SessionRequest(
      SessionCookie cookie, Scope scope, boolean isWithout, List<Part> parts, boolean onTls) {
    this.cookie = cookie;
    this.scope = scope;
    this.isWithout = isWithout;
    this.parts = List.copyOf(parts);
    this.onTls = onTls;
  }

  /**
   * Returns what the response, which starts now, does to the cookie; null: nothing.
   *
   * @param status of the response
   * @param headers all of its headers, their names in lower case
   */
  public @Nullable Change change(int status, Map<String, List<String>> headers) {
    try {
      return found(status, headers);
    } catch (RuntimeException error) { // The response goes out.
      Counts.LOG.log(Level.WARNING, "a response goes without its session cookie", error);
      return null;
    }
  }

  private @Nullable Change found(int status, Map<String, List<String>> headers) {
    Duration maxAge = Settings.current().sessionMaxAge();
    long now = Time.now().getEpochSecond();
    Lineage added = Content.worthCarrying(scope.added(), now, maxAge);
    if (added.isEmpty() && (!parts.isEmpty() || isWithout)) {
      return null;
    }
    String control = Caching.control(status, headers);
    if (control == null) {
      if (!added.isEmpty()) {
        Counts.count("session_unset");
        Counts.logOnce(
            "session_unset",
            "",
            "",
            () ->
                "a response that a shared cache may keep sets no session cookie: the next request"
                    + " of its user does not depend on what this one wrote");
      }
      return null;
    }
    if (added.isEmpty()) {
      return new Change("", cookie.header("", 0, onTls), control);
    }
    List<Part> all = new ArrayList<>(parts);
    all.add(new Part(now, added));
    String value = cookie.write(all);
    long maxAgeS = maxAge.plusNanos(999_999_999).toSeconds();
    return new Change(value, cookie.header(value, maxAgeS, onTls), control);
  }
}
