package io.antipode.mongodb;

import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonInt64;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * Lineages as numbers, one for each log, of which a server itself keeps the larger. A client keeps
 * those of few logs so: what has a log for each message or object is kept as text. Thread-safe.
 */
final class Numbers {
  /** How many logs one client merges as numbers within a day. */
  static final int MOST_LOGS = 64;

  private static final int MOST_POSITIONS = 16;
  private static final int MOST_NAME_BYTES = 1_024;
  private static final String COVERING = "/c";
  private static final long DAY_NS = Duration.ofDays(1).toNanos();
  private static final Pattern NAME = Pattern.compile("([^/]*)/([^/]*?)(/c)?");
  private static final Pattern ESCAPED = Pattern.compile("~([0-9a-f]{2})|([\\x00-}])");

  private Set<String> logs = new HashSet<>();
  private long sinceNs = System.nanoTime();

  /** Returns a lineage as positions by their logs; null where these would not say all of it. */
  @Nullable BsonDocument of(Lineage lineage) {
    List<WriteId> writes = lineage.writes();
    boolean isAll = Lineage.of(writes.toArray(WriteId[]::new)).equals(lineage);
    if (writes.isEmpty() || writes.size() > MOST_POSITIONS || !isAll) {
      return null;
    }
    @Nullable Set<String> egress = Settings.current().egress();
    BsonDocument numbers = new BsonDocument();
    int bytes = 0;
    for (WriteId write : writes) {
      boolean mayLeave = egress == null || egress.contains(write.datastore());
      if (write.opaqueVersion() != null || write.version() < 0 || !mayLeave) {
        return null;
      }
      String name = name(write);
      bytes += name.length();
      BsonDocument number =
          Bson.doc("v", new BsonInt64(write.version()), "h", new BsonInt32(write.writtenHour()));
      numbers.append(name, number);
    }
    return bytes <= MOST_NAME_BYTES && admits(numbers.keySet()) ? numbers : null;
  }

  private synchronized boolean admits(Set<String> names) {
    if (System.nanoTime() - sinceNs > DAY_NS) {
      logs.clear();
      sinceNs = System.nanoTime();
    }
    Set<String> together = new HashSet<>(logs);
    together.addAll(names);
    if (together.size() > MOST_LOGS) {
      return logs.containsAll(names);
    }
    logs = together;
    return true;
  }

  /** Returns the lineage of such positions; null where they are none. */
  static @Nullable Lineage lineage(BsonValue numbers) {
    if (!numbers.isDocument()) {
      return null;
    }
    Lineage.Builder lineage = Lineage.builder();
    try {
      for (Map.Entry<String, BsonValue> each : numbers.asDocument().entrySet()) {
        lineage.write(write(each.getKey(), each.getValue()));
      }
      return lineage.build();
    } catch (IllegalArgumentException none) {
      return null;
    }
  }

  /** Returns a field's name that paths of updates and expressions may hold. */
  private static String name(WriteId write) {
    String covering = write.isCovering() ? COVERING : "";
    return escaped(write.datastore()) + "/" + escaped(write.key()) + covering;
  }

  private static WriteId write(String name, BsonValue number) {
    Matcher parts = NAME.matcher(name);
    BsonDocument held = number.isDocument() ? number.asDocument() : new BsonDocument();
    Long version = Bson.integerAt(held, "v");
    Long hour = Bson.integerAt(held, "h");
    if (!parts.matches() || version == null || hour == null || version < 0 || hour < 0) {
      throw new IllegalArgumentException(name);
    }
    WriteId write =
        WriteId.of(plain(parts.group(1)), plain(parts.group(2)), version).writtenAt(hour);
    return parts.group(3) == null ? write : write.asCovering();
  }

  private static String escaped(String name) {
    StringBuilder text = new StringBuilder();
    for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
      boolean isPlain =
          (each >= '0' && each <= '9')
              || (each >= 'A' && each <= 'Z')
              || (each >= 'a' && each <= 'z')
              || each == '-'
              || each == '_';
      if (isPlain) {
        text.append((char) each);
      } else {
        text.append(String.format("~%02x", each));
      }
    }
    return text.toString();
  }

  private static String plain(@Nullable String text) {
    ByteBuffer bytes = ByteBuffer.allocate(text == null ? 0 : text.length());
    Matcher items = ESCAPED.matcher(text == null ? "" : text);
    int end = 0;
    for (; items.find() && items.start() == end; end = items.end()) {
      String digits = items.group(1);
      bytes.put((byte) (digits == null ? items.group(2).charAt(0) : Integer.parseInt(digits, 16)));
    }
    try {
      if (text == null || end < text.length()) {
        throw new IllegalArgumentException(text);
      }
      return StandardCharsets.UTF_8.newDecoder().decode(bytes.flip()).toString();
    } catch (CharacterCodingException error) {
      throw new IllegalArgumentException(text, error);
    }
  }
}
