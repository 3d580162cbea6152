package io.antipode.session;

import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The signed cookie that carries what a request added to the next requests of its user: how it is
 * named and signed, and where browsers send it.
 */
public final class SessionCookie {
  /** Most bytes of a cookie: its name, {@code =}, the content, and the signature. */
  private static final int MAX_BYTES = 1_024;

  /** Cookies of one name that are read: those of other paths and domains are sent, too. */
  private static final int MAX_COOKIES = 8;

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}");
  private static final Pattern ATTRIBUTE = Pattern.compile("[ -:<-~]*");

  private final Signer signer;
  private final String name;
  private final String path;
  private final @Nullable String domain;
  private final @Nullable Boolean isSecure;

  SessionCookie(
      Signer signer,
      String name,
      String path,
      @Nullable String domain,
      @Nullable Boolean isSecure) {
    if (!NAME.matcher(name).matches()) {
      throw new ConfigurationException(
          "a cookie's name is a token of at most 64 characters, not '" + name + "'");
    }
    this.signer = signer;
    this.name = name;
    this.path = checked("path", path);
    this.domain = domain == null ? null : checked("domain", domain);
    this.isSecure = isSecure;
  }

  private static String checked(String what, String text) {
    if (!ATTRIBUTE.matcher(text).matches()) {
      throw new ConfigurationException("the " + what + " of a cookie cannot be '" + text + "'");
    }
    return text;
  }

  /**
   * Returns a cookie that is named {@code antipode} and sent everywhere on its host.
   *
   * @param keys secrets that all servers of this service share, of at least 16 characters each. The
   *     first signs, the others are believed. To change it, let all servers know the new one last,
   *     then sign with it, and drop the old one when its cookies are too old anyway
   * @throws ConfigurationException if there is none, or one is too short
   */
  public static SessionCookie signedBy(List<String> keys) {
    if (keys.isEmpty()) {
      throw new ConfigurationException("a session cookie needs a key");
    }
    return new SessionCookie(new Keys(keys), "antipode", "/", null, null);
  }

  /**
   * Returns this cookie with another name.
   *
   * @throws ConfigurationException if a browser would not take it
   */
  public SessionCookie withName(String name) {
    return new SessionCookie(signer, name, path, domain, isSecure);
  }

  /**
   * Returns this cookie for what lies below a path, and the subdomains of a domain, or none.
   *
   * @throws ConfigurationException if a browser would not take it
   */
  public SessionCookie within(String path, @Nullable String domain) {
    return new SessionCookie(signer, name, path, domain, isSecure);
  }

  /**
   * Returns this cookie for TLS alone, or not; null: where the request came over TLS. Say true
   * where a proxy ends TLS and the server does not know of it.
   */
  public SessionCookie withSecure(@Nullable Boolean isSecure) {
    return new SessionCookie(signer, name, path, domain, isSecure);
  }

  /**
   * Lets a scope start from what the cookies of its request say as well.
   *
   * @param headers the values of all {@code Cookie} headers
   * @param isSecure whether the request came over TLS
   */
  public SessionRequest begin(Scope scope, List<String> headers, boolean isSecure) {
    List<String> values = values(headers);
    boolean onTls = this.isSecure == null ? isSecure : this.isSecure;
    return new SessionRequest(this, scope, values.isEmpty(), read(values), onTls);
  }

  private List<String> values(List<String> headers) {
    List<String> found = new ArrayList<>();
    for (String header : headers) {
      for (String pair : header.split(";", -1)) {
        int sign = pair.indexOf('=');
        if (sign >= 0 && pair.substring(0, sign).strip().equals(name)) {
          found.add(pair.substring(sign + 1).strip().replaceAll("^\"+|\"+$", ""));
        }
      }
    }
    return found;
  }

  /** What is left of cookies; the others are counted, and ignored. */
  private List<Part> read(List<String> values) {
    List<Part> parts = new ArrayList<>();
    long now = Time.now().getEpochSecond();
    for (String value : values.subList(0, Math.min(values.size(), MAX_COOKIES))) {
      String content = value.length() <= MAX_BYTES ? signer.unsign(value) : null;
      if (content == null) {
        ignored("session_forged", "no key of this service has signed it");
        continue;
      }
      List<Part> read = Content.parts(content, now);
      if (read == null) {
        ignored("session_unreadable", "it is no content of one");
        continue;
      }
      List<Part> living = Content.living(read, now, Settings.current().sessionMaxAge());
      if (living.isEmpty()) {
        Counts.count("session_old");
      }
      parts.addAll(living);
    }
    if (values.size() > MAX_COOKIES) {
      ignored("session_forged", "it came with " + MAX_COOKIES + " others of its name");
    }
    return parts;
  }

  private static void ignored(String count, String why) {
    Counts.count(count);
    Counts.logOnce(count, "", why, () -> "a session cookie is ignored: " + why);
  }

  /** Returns the signed value of a cookie that holds parts. */
  String write(List<Part> parts) {
    int room = MAX_BYTES - name.length() - "=".length() - signer.sign("").length();
    return signer.sign(Content.of(parts, room));
  }

  /** Returns the value of a {@code Set-Cookie} header. */
  String header(String value, long maxAgeS, boolean onTls) {
    return name
        + "="
        + value
        + "; Max-Age="
        + maxAgeS
        + "; Path="
        + path
        + (domain == null ? "" : "; Domain=" + domain)
        + (onTls ? "; Secure" : "")
        + "; HttpOnly; SameSite=Lax";
  }
}
