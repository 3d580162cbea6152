package io.antipode.grpc;

import io.antipode.lineage.LineageText;
import io.antipode.propagation.Headers;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.grpc.Metadata;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** gRPC metadata: what of ours is in it, what goes into it, and how much it may hold. */
final class Entries {
  static final Metadata.Key<String> BAGGAGE = key(Headers.BAGGAGE);
  static final Metadata.Key<String> LINEAGE = key(Headers.LINEAGE);
  static final Metadata.Key<String> SENT = key(Headers.SENT);

  /** What gRPC puts into a request that it sends again by a retry policy. */
  static final Metadata.Key<String> ATTEMPTS = key("grpc-previous-rpc-attempts");

  /** What a receiver takes by default; beyond it gRPC refuses calls. */
  private static final int MAX_BYTES = 8_192;

  /** What HTTP/2 counts for each entry besides its characters. */
  private static final int ENTRY_BYTES = 32;

  /** Left free in a request: gRPC's own entries, and what call credentials add after us. */
  private static final int REQUEST_SPARE = 2_048;

  /** The same without credentials, for what says little more than that something is missing. */
  private static final int REQUEST_LEAST = 768;

  /** gRPC's own entries of a response; its message comes on top. */
  private static final int RESPONSE_SPARE = 448;

  /** The least room that a lineage is given: less might not hold its own mark. */
  private static final int LEAST = 64;

  private static final int MEMBER_BYTES = Scope.MEMBER.length() + 1;

  private Entries() {}

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  /** Returns all values of an entry. */
  static List<String> values(@Nullable Metadata metadata, Metadata.Key<String> key) {
    List<String> values = new ArrayList<>();
    Iterable<String> found = metadata == null ? null : metadata.getAll(key);
    if (found != null) {
      found.forEach(values::add);
    }
    return values;
  }

  /** Returns an entry's values, joined; null without one. */
  static @Nullable String joined(Metadata metadata, Metadata.Key<String> key) {
    List<String> values = values(metadata, key);
    return values.isEmpty() ? null : String.join(",", values);
  }

  /** Gives an entry this value alone; an empty one takes it away. */
  static void set(Metadata metadata, Metadata.Key<String> key, String value) {
    metadata.removeAll(key);
    if (!value.isEmpty()) {
      metadata.put(key, value);
    }
  }

  /**
   * Returns the bytes that the lineage of a request may have.
   *
   * @param others the metadata without the lineage
   * @param fixed characters of the method and the authority, which are sent as well
   */
  static int requestRoom(Metadata others, int fixed) {
    int used = size(others) + fixed + ENTRY_BYTES + Headers.BAGGAGE.length() + MEMBER_BYTES + 1;
    used += ENTRY_BYTES + Headers.SENT.length() + 1;
    int room = MAX_BYTES - REQUEST_SPARE - used;
    return room >= LEAST ? room : Math.min(LEAST, MAX_BYTES - REQUEST_LEAST - used);
  }

  /** Returns the bytes that a lineage may have next to other trailers and a status message. */
  static int trailingRoom(Metadata others, @Nullable String message) {
    return MAX_BYTES
        - size(others)
        - encoded(message)
        - RESPONSE_SPARE
        - ENTRY_BYTES
        - Headers.LINEAGE.length();
  }

  /** Returns whether trailers are so large that an answer may have found no room in them. */
  static boolean mayHaveLostAnswer(@Nullable Metadata trailers) {
    return trailers != null && trailingRoom(trailers, null) < LEAST;
  }

  /** Returns a text as one of at most so many bytes; null where that is too little. */
  static @Nullable String fitting(String text, int room) {
    if (text.length() <= room) {
      return text;
    }
    Counts.count("grpc_metadata_over_limit");
    Counts.logOnce(
        "grpc_metadata_over_limit",
        "",
        "",
        () ->
            "metadata exceeds "
                + MAX_BYTES
                + " bytes: its lineage is cut, and marked as incomplete");
    return room < LEAST
        ? null
        : LineageText.leaving(LineageText.readable(Headers.BAGGAGE, text), room + MEMBER_BYTES);
  }

  private static int size(Metadata metadata) {
    int bytes = 0;
    for (String name : metadata.keys()) {
      if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
        Iterable<byte[]> values =
            metadata.getAll(Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER));
        if (values != null) {
          for (byte[] value : values) {
            bytes += ENTRY_BYTES + name.length() + (value.length * 4 + 2) / 3;
          }
        }
      } else {
        for (String value : values(metadata, key(name))) {
          bytes += ENTRY_BYTES + name.length() + value.length();
        }
      }
    }
    return bytes;
  }

  /** The bytes of a status message, of which all but plain characters take three. */
  private static int encoded(@Nullable String message) {
    int bytes = 0;
    if (message != null) {
      for (byte one : message.getBytes(StandardCharsets.UTF_8)) {
        bytes += one >= ' ' && one <= '~' && one != '%' ? 1 : 3;
      }
    }
    return bytes;
  }
}
