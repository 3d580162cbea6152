package io.antipode.dryrun;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.Collection;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** What records say, as JSON without blanks and in ASCII. */
final class Json {
  /** What stands for a log where records name a promise. */
  private static final String PROMISES = "promise";

  private Json() {}

  static String text(@Nullable String value) {
    if (value == null) {
      return "null";
    }
    StringBuilder json = new StringBuilder(value.length() + 2).append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < ' ' || c > '~') {
        json.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
      } else {
        json.append(c);
      }
    }
    return json.append('"').toString();
  }

  static String texts(@Nullable Collection<String> values) {
    return values == null
        ? "null"
        : values.stream().sorted().map(Json::text).collect(Collectors.joining(",", "[", "]"));
  }

  static String write(Dependency found) {
    if (found instanceof Promise promise) {
      return write(promise.datastore(), PROMISES, promise.id());
    }
    WriteId write = (WriteId) found;
    String opaque = write.opaqueVersion();
    String version = opaque == null ? Long.toUnsignedString(write.version()) : opaque;
    return write(write.datastore(), write.key(), version);
  }

  private static String write(String datastore, String log, String version) {
    return "{\"datastore\":"
        + text(datastore)
        + ",\"log\":"
        + text(log)
        + ",\"version\":"
        + text(version)
        + "}";
  }

  /** Returns a list, each once, in an order that depends on nothing else. */
  static String writes(Collection<? extends Dependency> found) {
    TreeSet<String> each = new TreeSet<>();
    found.forEach(one -> each.add(write(one)));
    return "[" + String.join(",", each) + "]";
  }
}
