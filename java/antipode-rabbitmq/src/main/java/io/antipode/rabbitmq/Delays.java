package io.antipode.rabbitmq;

import io.antipode.ConfigurationException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Delay queues: how long a deferred message waits on the broker, and where. Without I/O.
 *
 * <p>RabbitMQ expires messages at the head of a queue alone: there is a queue for each power of
 * two. What expires goes back to the work queue, at its tail. A queue cannot be declared in two
 * ways: its name says all that it is declared with. Python's workers use the same queues.
 *
 * @param queue the work queue
 * @param leastS the shortest delay, and the first
 * @param mostS the longest
 * @param arguments of the delay queues, on top of ours
 */
record Delays(String queue, double leastS, double mostS, Map<String, Object> arguments) {
  /**
   * How long a delay queue outlives the last declaration, on top of its delay. The broker deletes
   * an unused queue with all that is in it: what is published must be sure to expire first.
   */
  static final Duration SPARE = Duration.ofMinutes(10);

  private static final double FRESH = 0.5;
  private static final double SURE = 0.9;
  private static final int MOST_NAME = 255;
  private static final int MOST_START = 190;
  private static final double LEAST_DELAY_S = 0.001;
  private static final double MOST_DELAY_S = 86_400;
  private static final int MOST_DOUBLINGS = 32;
  private static final double MS = 1_000;
  private static final int DIGITS = 8;
  private static final int LAST_ASCII = 0x7e;

  Delays {
    if (!(leastS >= LEAST_DELAY_S && leastS <= mostS && mostS <= MOST_DELAY_S)) {
      throw new ConfigurationException(
          "delays are between a millisecond and a day, the shortest first, not "
              + leastS
              + " s and "
              + mostS
              + " s");
    }
    arguments = Map.copyOf(arguments);
  }

  /**
   * Returns the delay of a message that was deferred so often already. It doubles each time, and is
   * not shorter than what the store estimates.
   */
  int pickMs(@Nullable Duration eta, int attempts) {
    double grownS = leastS * Math.scalb(1.0, Math.min(attempts, MOST_DOUBLINGS));
    double wantedS = eta == null ? grownS : Math.max(grownS, eta.toMillis() / MS);
    double delayS = leastS;
    while (delayS < wantedS && delayS < mostS) {
      delayS *= 2;
    }
    return (int) Math.rint(Math.min(delayS, mostS) * MS);
  }

  /** Returns the name of the queue of a delay. */
  String name(int delayMs) {
    String apart = arguments.isEmpty() ? "" : "." + sha256(json(arguments)).substring(0, DIGITS);
    return within("antipode.delay." + delayMs + apart + "." + queue);
  }

  /** Returns the arguments of that queue. Whoever changes them changes the name as well. */
  Map<String, Object> declared(int delayMs) {
    Map<String, Object> all = new HashMap<>(arguments);
    all.put("x-message-ttl", delayMs);
    all.put("x-dead-letter-exchange", "");
    all.put("x-dead-letter-routing-key", queue);
    all.put("x-expires", delayMs + (int) SPARE.toMillis());
    return all;
  }

  /** Returns a name, shortened to what a queue may be called, and still its own. */
  static String within(String name) {
    byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
    if (bytes.length <= MOST_NAME) {
      return name;
    }
    try {
      String start =
          StandardCharsets.UTF_8
              .newDecoder()
              .onMalformedInput(CodingErrorAction.IGNORE)
              .decode(ByteBuffer.wrap(bytes, 0, MOST_START))
              .toString();
      return start + "." + sha256(name);
    } catch (CharacterCodingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static String sha256(String text) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** Returns the text that Python's workers name the same queue by. */
  private static String json(Map<String, Object> arguments) {
    return new TreeMap<>(arguments)
        .entrySet().stream()
            .map(each -> quoted(each.getKey()) + ": " + value(each.getValue()))
            .collect(Collectors.joining(", ", "{", "}"));
  }

  private static String value(Object value) {
    return value instanceof Number || value instanceof Boolean
        ? value.toString()
        : quoted(value.toString());
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (int index = 0; index < text.length(); index++) {
      char each = text.charAt(index);
      if (each == '"' || each == '\\') {
        quoted.append('\\').append(each);
      } else if (each < ' ' || each > LAST_ASCII) {
        quoted.append(String.format("\\u%04x", (int) each));
      } else {
        quoted.append(each);
      }
    }
    return quoted.append('"').toString();
  }

  /**
   * Which delay queues are sure to outlive what is published to them. A queue whose declaration was
   * sent at some moment lives for its delay and {@link #SPARE} from then on at least: a message
   * that was confirmed before the spare time was over expires before its queue does.
   */
  static final class Leases {
    private final LongSupplier nanoTime;
    private final Map<String, Long> since = new HashMap<>();

    Leases(LongSupplier nanoTime) {
      this.nanoTime = nanoTime;
    }

    /** Returns now, for {@link #begin}. */
    long now() {
      return nanoTime.getAsLong();
    }

    /** Notes a declaration that was sent at a moment. */
    void begin(String name, long at) {
      since.put(name, at);
    }

    /** Returns whether there is ample time to publish to the queue. */
    boolean isFresh(String name) {
      return spent(name) < FRESH;
    }

    /** Returns whether a message that was confirmed by now expires before the queue does. */
    boolean isSure(String name) {
      return spent(name) < SURE;
    }

    private double spent(String name) {
      Long at = since.get(name);
      return at == null ? 1 : (double) (nanoTime.getAsLong() - at) / SPARE.toNanos();
    }

    /** Declares it again before the next publication. */
    void end(String name) {
      since.remove(name);
    }
  }
}
