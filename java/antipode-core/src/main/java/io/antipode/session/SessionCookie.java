package io.antipode.session;

import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The signed cookie that carries what a request added to the next requests of its user: how it is
 * named and signed, and where browsers send it. And the tokens that events carry to other browsers.
 */
public final class SessionCookie {
  /** Most bytes of a cookie: its name, {@code =}, the content, and the signature. */
  private static final int MAX_BYTES = 1_024;

  /**
   * Cookies of one name that are read: those of other paths and domains are sent, too. Of tokens as
   * many.
   */
  private static final int MAX_COOKIES = 8;

  /** The header in which a page sends the tokens of the events that it got. */
  public static final String TOKEN_HEADER = "antipode-session";

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}");
  private static final Pattern ATTRIBUTE = Pattern.compile("[ -:<-~]*");

  private final Signer signer;
  private final Signer tokens;
  private final String name;
  private final String path;
  private final @Nullable String domain;
  private final @Nullable Boolean isSecure;

  SessionCookie(
      Signer signer,
      Signer tokens,
      String name,
      String path,
      @Nullable String domain,
      @Nullable Boolean isSecure) {
    if (!NAME.matcher(name).matches()) {
      throw new ConfigurationException(
          "a cookie's name is a token of at most 64 characters, not '" + name + "'");
    }
    this.signer = signer;
    this.tokens = tokens;
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
    Signer signer = new Keys(keys, Keys.COOKIE);
    return new SessionCookie(signer, new Keys(keys, Keys.TOKEN), "antipode", "/", null, null);
  }

  /**
   * Returns this cookie with another name.
   *
   * @throws ConfigurationException if a browser would not take it
   */
  public SessionCookie withName(String name) {
    return new SessionCookie(signer, tokens, name, path, domain, isSecure);
  }

  /**
   * Returns this cookie for what lies below a path, and the subdomains of a domain, or none.
   *
   * @throws ConfigurationException if a browser would not take it
   */
  public SessionCookie within(String path, @Nullable String domain) {
    return new SessionCookie(signer, tokens, name, path, domain, isSecure);
  }

  /**
   * Returns this cookie for TLS alone, or not; null: where the request came over TLS. Say true
   * where a proxy ends TLS and the server does not know of it.
   */
  public SessionCookie withSecure(@Nullable Boolean isSecure) {
    return new SessionCookie(signer, tokens, name, path, domain, isSecure);
  }

  /**
   * Lets a scope start from what the cookies and tokens of its request say as well.
   *
   * @param headers the values of all {@code Cookie} headers
   * @param tokens the values of all headers {@link #TOKEN_HEADER}
   * @param isSecure whether the request came over TLS
   */
  public SessionRequest begin(
      Scope scope, List<String> headers, List<String> tokens, boolean isSecure) {
    List<String> values = values(headers);
    List<Part> cookies = read("cookie", signer, values);
    List<Part> events = read("token", this.tokens, tokens(tokens));
    if (!cookies.isEmpty() || !events.isEmpty()) {
      Stream<Part> came = Stream.concat(cookies.stream(), events.stream());
      scope.receive(Lineage.empty().merge(came.map(Part::lineage).toArray(Lineage[]::new)));
    }
    boolean onTls = this.isSecure == null ? isSecure : this.isSecure;
    return new SessionRequest(this, scope, values.isEmpty(), cookies, onTls);
  }

  /**
   * Returns what the current request depends on by now, for an event to whoever's browser. The page
   * that gets the event sends it in the header {@link #TOKEN_HEADER} of its next requests: those
   * depend on it, for {@code sessionMaxAge}. It is signed, not hidden: {@code egress} says which
   * datastores may be named (specification, sessions, "The token").
   *
   * @return at most 1,024 characters, without spaces and commas; empty where there is nothing to
   *     wait for. What is written later is not in it, nor what a transaction has written that is
   *     not committed yet: that is counted ({@code sent_before_commit})
   */
  public String token() {
    Scope scope = KillSwitch.isDisabled() ? null : Scope.currentOrNull();
    if (scope == null) {
      return "";
    }
    scope.leaves();
    long now = Time.now().getEpochSecond();
    Lineage known = Content.worthCarrying(scope.lineage(), now, Settings.current().sessionMaxAge());
    int room = MAX_BYTES - tokens.sign("").length();
    String content = Content.of(List.of(new Part(now, known)), room);
    return content.isEmpty() ? "" : tokens.sign(content);
  }

  private static List<String> tokens(List<String> headers) {
    return headers.stream()
        .flatMap(header -> Stream.of(header.split(",")))
        .map(String::strip)
        .filter(token -> !token.isEmpty())
        .toList();
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

  /** What is left of cookies or tokens; the others are counted, and ignored. */
  private static List<Part> read(String what, Signer signer, List<String> values) {
    List<Part> parts = new ArrayList<>();
    long now = Time.now().getEpochSecond();
    for (String value : values.subList(0, Math.min(values.size(), MAX_COOKIES))) {
      String content = value.length() <= MAX_BYTES ? signer.unsign(value) : null;
      if (content == null) {
        ignored("session_forged", what, "no key of this service has signed it");
        continue;
      }
      List<Part> read = Content.parts(content, now);
      if (read == null) {
        ignored("session_unreadable", what, "it is no content of one");
        continue;
      }
      List<Part> living = Content.living(read, now, Settings.current().sessionMaxAge());
      if (living.isEmpty()) {
        Counts.count("session_old");
      }
      parts.addAll(living);
    }
    if (values.size() > MAX_COOKIES) {
      ignored("session_forged", what, "it came with " + MAX_COOKIES + " others of its name");
    }
    return parts;
  }

  private static void ignored(String count, String what, String why) {
    Counts.count(count);
    String said = "a session " + what + " is ignored: " + why;
    Counts.logOnce(count, "", said, () -> said);
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
