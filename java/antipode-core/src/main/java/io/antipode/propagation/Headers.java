package io.antipode.propagation;

import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The headers that carry lineages, and how to take them out of others' headers. */
public final class Headers {
  /** The header of requests in which baggage travels. */
  public static final String BAGGAGE = "baggage";

  /** The header of responses, or key of gRPC's trailing metadata, that carries a lineage back. */
  public static final String LINEAGE = "antipode-lineage";

  /** The header of requests that were sent with a lineage. */
  public static final String SENT = "antipode-sent";

  /** What baggage may have in one request. */
  static final int MAX_BYTES = 8_192;

  /** How many members baggage may have. */
  static final int MAX_MEMBERS = 64;

  private static final String OURS = Scope.MEMBER + "=";

  private Headers() {}

  /**
   * Takes everything of this library out of the headers of a request or a response, in place: for
   * gateways, on the way in and on the way out. Other members of the baggage stay as they are.
   *
   * @param headers names, in any case, to their values
   */
  public static void strip(Map<String, List<String>> headers) {
    for (String name : List.copyOf(headers.keySet())) {
      if (name.equalsIgnoreCase(LINEAGE) || name.equalsIgnoreCase(SENT)) {
        headers.remove(name);
      } else if (name.equalsIgnoreCase(BAGGAGE)) {
        List<String> values = headers.get(name);
        String header = values == null ? "" : String.join(",", values);
        if (hasMember(header)) {
          replace(headers, name, withoutMember(header));
        }
      }
    }
  }

  private static void replace(Map<String, List<String>> headers, String name, String value) {
    if (value.isEmpty()) {
      headers.remove(name);
    } else {
      headers.put(name, new ArrayList<>(List.of(value)));
    }
  }

  // Headers, whatever the case of their names.

  /** Returns all values of a header, joined; null where it has none. */
  static @Nullable String joined(Map<String, List<String>> headers, String name) {
    List<String> values = new ArrayList<>();
    headers.forEach(
        (each, found) -> {
          if (each.equalsIgnoreCase(name)) {
            values.addAll(found);
          }
        });
    return values.isEmpty() ? null : String.join(",", values);
  }

  /** Gives a header this value alone; an empty one takes it away. */
  static void set(Map<String, List<String>> headers, String name, String value) {
    for (String each : List.copyOf(headers.keySet())) {
      if (each.equalsIgnoreCase(name)) {
        headers.remove(each);
      }
    }
    replace(headers, name, value);
  }

  // Members of the baggage.

  /**
   * Returns the values of all members of ours in these headers, as they were before
   * percent-encoding. Of more than baggage may have only the first, and an empty one for the rest.
   */
  public static List<String> members(Iterable<String> headers) {
    List<String> texts = new ArrayList<>();
    for (String header : headers) {
      addMembers(texts, header);
      if (texts.size() > MAX_MEMBERS) {
        texts.set(MAX_MEMBERS, "");
        return texts;
      }
    }
    return texts;
  }

  private static void addMembers(List<String> texts, String header) {
    if (!header.contains(Scope.MEMBER)) {
      return;
    }
    for (int start = 0; start <= header.length() && texts.size() <= MAX_MEMBERS; ) {
      int end = end(header, start);
      if (isOurs(header, start, end)) {
        int equals = header.indexOf('=', start);
        String value = equals < 0 || equals > end ? "" : header.substring(equals + 1, end);
        int properties = value.indexOf(';');
        texts.add(decoded((properties < 0 ? value : value.substring(0, properties)).strip()));
      }
      start = end + 1;
    }
  }

  /** Returns whether a baggage header has a member of ours. */
  public static boolean hasMember(@Nullable String header) {
    if (header == null || !header.contains(Scope.MEMBER)) {
      return false;
    }
    for (int start = 0; start <= header.length(); ) {
      int end = end(header, start);
      if (isOurs(header, start, end)) {
        return true;
      }
      start = end + 1;
    }
    return false;
  }

  /** Returns a baggage header without members of ours. */
  public static String withoutMember(String header) {
    if (!hasMember(header)) {
      return header;
    }
    List<String> kept = new ArrayList<>();
    for (int start = 0; start <= header.length(); ) {
      int end = end(header, start);
      if (!isOurs(header, start, end)) {
        kept.add(header.substring(start, end));
      }
      start = end + 1;
    }
    return String.join(",", kept);
  }

  /** Returns a baggage header with a text as its first member, within what platforms pass on. */
  public static String withMember(@Nullable String header, String text) {
    StringBuilder joined = new StringBuilder(OURS).append(text);
    if (header == null) {
      return joined.toString();
    }
    String others = withoutMember(header);
    int members = 1;
    boolean lost = false;
    for (int start = 0; start <= others.length(); ) {
      int end = end(others, start);
      if (!others.substring(start, end).isBlank()) {
        if (joined.length() + end - start + 1 > MAX_BYTES) {
          lost = true;
          break;
        }
        joined.append(',').append(others, start, end);
        members++;
      }
      start = end + 1;
    }
    if (lost || members > MAX_MEMBERS) {
      Counts.count("baggage_over_limit");
      Counts.logOnce(
          "baggage_over_limit",
          "",
          "",
          () ->
              "the baggage header exceeds "
                  + MAX_BYTES
                  + " bytes or "
                  + MAX_MEMBERS
                  + " members: the lineage goes first, others are lost");
    }
    return joined.toString();
  }

  private static int end(String header, int start) {
    int comma = header.indexOf(',', start);
    return comma < 0 ? header.length() : comma;
  }

  private static boolean isOurs(String header, int start, int end) {
    int equals = header.indexOf('=', start);
    int nameEnd = equals < 0 || equals > end ? end : equals;
    return header.substring(start, nameEnd).strip().equals(Scope.MEMBER);
  }

  /** Percent-decodes; what is no encoding stays as it is, and is no lineage. */
  private static String decoded(String value) {
    if (value.indexOf('%') < 0 && value.indexOf('+') < 0) {
      return value;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(value.length());
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      int high = c == '%' && i + 2 < value.length() ? Character.digit(value.charAt(i + 1), 16) : -1;
      int low = high < 0 ? -1 : Character.digit(value.charAt(i + 2), 16);
      if (low >= 0) {
        bytes.write((high << 4) | low);
        i += 2;
      } else {
        byte[] plain = String.valueOf(c == '+' ? ' ' : c).getBytes(StandardCharsets.UTF_8);
        bytes.write(plain, 0, plain.length);
      }
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }
}
