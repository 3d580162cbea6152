package io.antipode.runtime;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Which entry of the setting {@code peers} a call is of. */
public final class PeerNames {
  /** An entry: its host with or without a port, and the path, empty for the whole host. */
  private record Entry(String host, String path) {
    boolean isExact() {
      return !host.startsWith("*.");
    }

    boolean covers(String called) {
      return called.equals(path) || called.startsWith(path + "/");
    }
  }

  /** The most exact host first, then the longest path. */
  private static final Comparator<Entry> PRECEDENCE =
      Comparator.comparing(Entry::isExact)
          .thenComparing(entry -> EgressHosts.hasPort(entry.host))
          .thenComparing(entry -> entry.host.length())
          .thenComparing(entry -> entry.path.length())
          .thenComparing(Entry::path);

  /**
   * What a setting says of a call.
   *
   * @param path the path of its entry
   * @param value the value of its entry
   */
  public record Found<V>(String path, V value) {}

  private PeerNames() {}

  /** Returns whether an entry names no host, so that it would never match a call. */
  public static boolean isRefused(String entry) {
    Entry parts = split(entry);
    return EgressHosts.isRefused(parts.host)
        || parts.path.chars().anyMatch(c -> c == '?' || c == '#' || c == ' ');
  }

  /** Returns what the entries say of a call; null where none is of it. */
  public static <V> @Nullable Found<V> find(
      Map<String, V> entries, String host, int port, String path) {
    return entries.entrySet().stream()
        .map(each -> Map.entry(split(each.getKey()), each.getValue()))
        .filter(each -> EgressHosts.name(List.of(each.getKey().host), host, port))
        .filter(each -> each.getKey().covers(path))
        .max(Map.Entry.comparingByKey(PRECEDENCE))
        .map(each -> new Found<>(each.getKey().path, each.getValue()))
        .orElse(null);
  }

  private static Entry split(String entry) {
    String text = entry.strip();
    int slash = text.indexOf('/');
    if (slash < 0) {
      return new Entry(text, "");
    }
    int end = text.length();
    while (end > slash && text.charAt(end - 1) == '/') {
      end--;
    }
    return new Entry(text.substring(0, slash), text.substring(slash, end));
  }
}
