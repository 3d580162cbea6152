package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Outcome;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Incomplete;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What a message was when it was published, kept through deferrals. Without I/O.
 *
 * <p>A deferred message is published again, by its consumer and then by the broker, and each adds
 * to it or takes something away. What they would change lies in one header of ours meanwhile, as
 * Python's workers have it, and is put back before the handler sees the message.
 *
 * @param headers without ours that count deferrals; null where there are none
 * @param exchange to which it was published
 * @param routingKey with which it was published
 * @param expiration its time to live as the property has it; null without
 * @param messageId null without
 * @param attempts how often it was deferred
 * @param atMs when it was delivered here, by the wall clock
 * @param untilMs when it expires, if it was deferred and does
 */
record Deferral(
    @Nullable Map<String, Object> headers,
    String exchange,
    String routingKey,
    @Nullable String expiration,
    @Nullable String messageId,
    int attempts,
    long atMs,
    @Nullable Long untilMs) {
  /** The header of a message that waits in a delay queue, or was in one. */
  static final String DEFERRED = "antipode-deferred";

  /** The header of a dead letter: why it is one, and what it was. */
  static final String DEAD = "antipode-dead-letter";

  /** Outcomes are listed up to this many characters: all headers go into one frame. */
  private static final int MOST_TEXT = 16_384;

  private static final int MOST_LINE = 500;
  private static final int MOST_ATTEMPTS = 1_000_000;

  /** The broker's longest time to live is of 32 bits. */
  private static final Pattern MILLISECONDS = Pattern.compile("[0-9]{1,10}");

  /** Headers that brokers act on when a message is published: more queues to route to. */
  private static final Set<String> ROUTING = Set.of("CC", "BCC");

  /** How often one queue delivered it; another queue would take it for its own count. */
  private static final Set<String> COUNTED = Set.of("x-delivery-count", "x-acquired-count");

  private static final List<String> DEATHS = List.of("x-death", "x-first-death-", "x-last-death-");
  private static final String HEADERS = "headers";
  private static final String EXCHANGE = "exchange";
  private static final String ROUTING_KEY = "routing_key";
  private static final String EXPIRATION = "expiration";
  private static final String MESSAGE_ID = "message_id";
  private static final String ATTEMPTS = "attempts";
  private static final String UNTIL = "until";

  /**
   * Returns what a delivered message was before it was deferred; the message itself if it never
   * was. Headers may be forged: whatever ours holds, this does not fail. A dead letter that was
   * moved back begins again, and so does what was rejected.
   */
  static Deferral of(Delivery delivered, long atMs) {
    BasicProperties properties = delivered.getProperties();
    @Nullable Map<String, Object> given = properties.getHeaders();
    Map<String, Object> headers = given == null ? new HashMap<>() : new HashMap<>(given);
    @Nullable Object deferred = headers.remove(DEFERRED);
    @Nullable Object dead = headers.remove(DEAD);
    String exchange = delivered.getEnvelope().getExchange();
    String key = delivered.getEnvelope().getRoutingKey();
    @Nullable String id = properties.getMessageId();
    if (!((deferred == null ? dead : deferred) instanceof Map<?, ?> held)) {
      return new Deferral(given, exchange, key, properties.getExpiration(), id, 0, atMs, null);
    }
    headers.keySet().removeIf(Deferral::isChanged);
    if (held.get(HEADERS) instanceof Map<?, ?> kept) {
      kept.forEach((name, value) -> headers.put(name.toString(), value));
    }
    boolean isAnew = deferred == null || wasRejected(given);
    @Nullable Object without = held.get(MESSAGE_ID);
    return new Deferral(
        headers.isEmpty() ? null : headers,
        Objects.requireNonNullElse(text(held, EXCHANGE), exchange),
        Objects.requireNonNullElse(text(held, ROUTING_KEY), key),
        text(held, EXPIRATION),
        Boolean.FALSE.equals(without) ? null : "".equals(Texts.text(without)) ? "" : id,
        isAnew ? 0 : attempts(held.get(ATTEMPTS)),
        atMs,
        isAnew || !(held.get(UNTIL) instanceof Number until) ? null : until.longValue());
  }

  private static int attempts(@Nullable Object held) {
    return held instanceof Number number
        ? (int) Math.max(0, Math.min(number.longValue(), MOST_ATTEMPTS))
        : 0;
  }

  private static @Nullable String text(Map<?, ?> held, String name) {
    return Texts.text(held.get(name));
  }

  /** Returns whether it died last by something else than the end of a delay. */
  private static boolean wasRejected(@Nullable Map<String, Object> headers) {
    return headers != null
        && headers.get("x-death") instanceof List<?> deaths
        && !deaths.isEmpty()
        && deaths.get(0) instanceof Map<?, ?> last
        && last.get("reason") != null
        && !"expired".equals(Texts.text(last.get("reason")));
  }

  /** Returns whether a broker acts on a header, or writes it when a message expires in a queue. */
  private static boolean isChanged(String name) {
    return ROUTING.contains(name) || DEATHS.stream().anyMatch(name::startsWith);
  }

  /** Returns whether its time was over before it came back. */
  boolean isExpired() {
    return untilMs != null && untilMs <= atMs;
  }

  /** Returns the headers with which it goes into a delay queue. */
  Map<String, Object> deferred() {
    Map<String, Object> kept = kept();
    Long until = until();
    if (until != null) {
      kept.put(UNTIL, until);
    }
    return with(DEFERRED, kept);
  }

  /** Returns when it expires; null where it does not, or has a forged time to live. */
  private @Nullable Long until() {
    if (untilMs != null || expiration == null) {
      return untilMs;
    }
    return MILLISECONDS.matcher(expiration).matches() ? atMs + Long.parseLong(expiration) : null;
  }

  /** Returns the headers with which it becomes a dead letter of a queue. */
  Map<String, Object> dead(Map<String, Object> why, String queue) {
    Map<String, Object> kept = kept();
    why.forEach(kept::putIfAbsent);
    kept.put("queue", queue);
    return with(DEAD, kept);
  }

  private Map<String, Object> kept() {
    Map<String, Object> kept = new HashMap<>();
    kept.put(EXCHANGE, exchange);
    kept.put(ROUTING_KEY, routingKey);
    Map<String, Object> apart = new HashMap<>(headers == null ? Map.of() : headers);
    apart.keySet().removeIf(name -> !isChanged(name));
    if (!apart.isEmpty()) {
      kept.put(HEADERS, apart);
    }
    if (expiration != null) {
      kept.put(EXPIRATION, expiration);
    }
    if (messageId == null) { // Some clients make one up.
      kept.put(MESSAGE_ID, false);
    } else if (messageId.isEmpty()) {
      kept.put(MESSAGE_ID, "");
    }
    kept.put(ATTEMPTS, attempts + 1);
    return kept;
  }

  private Map<String, Object> with(String name, Map<String, Object> kept) {
    Map<String, Object> all = new HashMap<>(headers == null ? Map.of() : headers);
    all.keySet().removeIf(each -> isChanged(each) || COUNTED.contains(each));
    all.put(name, kept);
    return all;
  }

  // Why a message is a dead letter.

  /** Returns why a message whose barrier or check ended so is one: exact outcomes, as text. */
  static Map<String, Object> why(BarrierResult result) {
    @Nullable UnmetException error = result.error();
    Map<String, Object> why = new HashMap<>();
    why.put("reason", error == null ? "" : error.code());
    why.put("message", line(error == null ? "" : String.valueOf(error.getMessage())));
    why.put(
        "outcomes",
        lines(
            result.outcomes().stream()
                .sorted(Comparator.comparing(Outcome::isMet))
                .map(Outcome::toString)));
    why.put("incomplete", lines(result.incomplete().stream().map(Deferral::text).sorted()));
    return why;
  }

  private static String text(Incomplete mark) {
    String subject = mark.subject().isEmpty() ? "unknown source" : mark.subject();
    return subject + " (" + mark.reason() + ")";
  }

  /** Returns why a message whose handler failed is one. */
  static Map<String, Object> why(Exception error) {
    String text = error.getClass().getSimpleName() + ": " + error.getMessage();
    Map<String, Object> why = new HashMap<>();
    why.put("reason", "handler_failed");
    why.put("message", line(text));
    return why;
  }

  private static String line(String text) {
    return text.length() <= MOST_LINE ? text : text.substring(0, MOST_LINE);
  }

  /** Returns as many lines as headers have room for; the last says how many there are more. */
  private static List<String> lines(Stream<String> texts) {
    List<String> all = texts.map(Deferral::line).toList();
    List<String> lines = new ArrayList<>();
    int length = 0;
    for (String each : all) {
      length += each.length();
      if (length > MOST_TEXT) {
        lines.add("and " + (all.size() - lines.size()) + " more");
        break;
      }
      lines.add(each);
    }
    return lines;
  }
}
