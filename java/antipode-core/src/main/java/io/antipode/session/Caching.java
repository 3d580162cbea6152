package io.antipode.session;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** What a response says to caches: one that a shared cache may keep must set no cookie. */
final class Caching {
  private static final Pattern QUOTED = Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*\"?");

  /** For caches of one kind, over what the answer says to all. */
  private static final Pattern TARGETED = Pattern.compile(".+-cache-control|surrogate-control");

  private static final int NOT_MODIFIED = 304;

  private Caching() {}

  /**
   * Returns the {@code Cache-Control} of a response that sets a cookie; null where it must not.
   *
   * @param headers all of its headers, their names in lower case
   */
  static @Nullable String control(int status, Map<String, List<String>> headers) {
    for (Map.Entry<String, List<String>> header : headers.entrySet()) {
      boolean isTargeted = TARGETED.matcher(header.getKey()).matches();
      if (isTargeted && !header.getValue().stream().allMatch(each -> isPrivate(said(each)))) {
        return null;
      }
    }
    String given = String.join(", ", headers.getOrDefault("cache-control", List.of()));
    Map<String, String> said = said(given);
    if (isPrivate(said)) {
      return given;
    }
    if (status == NOT_MODIFIED || hasLifetime(said, headers.containsKey("expires"))) {
      return null;
    }
    return given.isEmpty() ? "private" : given + ", private";
  }

  /** Returns directives in lower case, with their arguments; quoted ones are {@code ""}. */
  private static Map<String, String> said(String value) {
    Map<String, String> directives = new HashMap<>();
    String plain = QUOTED.matcher(value.toLowerCase(Locale.ROOT)).replaceAll("\"\"");
    for (String each : plain.split(",", -1)) {
      int sign = each.indexOf('=');
      String name = sign < 0 ? each : each.substring(0, sign);
      directives.put(name.strip(), sign < 0 ? "" : each.substring(sign + 1).strip());
    }
    return directives;
  }

  /** One with an argument is about one header alone. */
  private static boolean isPrivate(Map<String, String> said) {
    return said.containsKey("no-store") || "".equals(said.get("private"));
  }

  /** Returns whether caches are allowed to keep it, not only to ask again each time. */
  private static boolean hasLifetime(Map<String, String> said, boolean expires) {
    List<String> ages =
        Stream.of("max-age", "s-maxage").map(said::get).filter(Objects::nonNull).toList();
    if (said.containsKey("public") || !ages.stream().allMatch(age -> age.matches("0*"))) {
      return true;
    }
    return expires && ages.isEmpty() && !said.containsKey("no-cache");
  }
}
