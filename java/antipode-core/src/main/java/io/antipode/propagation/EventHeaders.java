package io.antipode.propagation;

import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Lineages in the messages of a stream: server-sent events, websockets, what a call streams. A
 * stream's headers are sent once, before what its messages are about has happened. So each message
 * takes the lineage along itself:
 *
 * <pre>{@code
 * socket.sendMessage(new TextMessage(json.writeValueAsString(
 *     Map.of("order", 7, "headers", EventHeaders.current()))));
 *
 * try (ScopeBlock event = EventHeaders.scope(message.get("headers"))) {
 *   Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(5)));
 *   show(message.get("order"));
 * }
 * }</pre>
 */
public final class EventHeaders {
  /** A text that is no lineage. */
  private static final List<String> UNREADABLE = List.of("");

  private EventHeaders() {}

  /**
   * Returns what one message of a stream takes along, the lineage of the current scope, of now:
   * {@code {"baggage": "antipode=..."}}, or nothing without a scope. Make them for each message,
   * where what it tells was done, and once that is committed. Between services: for users' browsers
   * there are tokens, which are signed.
   */
  public static Map<String, String> current() {
    Scope scope = Scope.currentOrNull();
    return scope == null || Baggage.current().getEntryValue(Scope.MEMBER) == null
        ? Map.of()
        : Map.of(Headers.BAGGAGE, Headers.withMember(null, scope.text()));
  }

  /**
   * Opens the scope of one message of a stream, a request of its own that begins with what the
   * message depends on. It never joins a scope that is open already, and adds nothing to it: what a
   * stream is read in may live for days.
   *
   * @param headers what the message has of {@link #current}: a map, as a parser made it, of names
   *     in any case to texts, or to lists of texts. Null or no lineage in it, as of a sender
   *     without this library: the scope is empty. What cannot be read makes it incomplete ({@code
   *     baggage}, {@code unreadable})
   */
  public static ScopeBlock scope(@Nullable Object headers) {
    List<String> texts = texts(headers);
    Scope scope = Scope.opened(Incoming.lineage(texts));
    ScopeBlock block = ScopeBlock.enter(scope, Context.current(), Scope::end);
    if (texts.isEmpty()) {
      Recording.recordUnlabelled(scope, "");
    }
    return block;
  }

  /** Returns the lineages in headers, which somebody else made: they may be anything. */
  private static List<String> texts(@Nullable Object headers) {
    if (headers == null) {
      return List.of();
    }
    if (!(headers instanceof Map<?, ?> map)) {
      return UNREADABLE;
    }
    List<String> values = new ArrayList<>();
    for (Map.Entry<?, ?> each : map.entrySet()) {
      if (Headers.BAGGAGE.equalsIgnoreCase(String.valueOf(each.getKey()))) {
        @Nullable Object value = each.getValue();
        for (@Nullable Object text :
            value instanceof Collection<?> several ? several : Collections.singletonList(value)) {
          if (!(text instanceof String readable)) {
            return UNREADABLE;
          }
          values.add(readable);
        }
      }
    }
    return Headers.members(values);
  }
}
