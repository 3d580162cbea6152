package io.antipode.messages;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.LineageTooLargeException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What this library puts into the headers of messages and finds there. Without I/O.
 *
 * <p>{@code baggage} is the W3C header, with the lineage as its member {@code antipode}: a service
 * that only knows baggage passes it on. {@code antipode-write} names the message's own write;
 * {@code antipode-promise} is the token of a promise that the message fulfils.
 */
public final class MessageHeaders {
  private static final String WRITE = "antipode-write";
  private static final String PROMISE = "antipode-promise";

  /** What is put there. */
  public static final List<String> NAMES = List.of(Headers.BAGGAGE, WRITE, PROMISE);

  /** Counts in a bound of a lineage's text, and not in a header. */
  private static final int MEMBER_BYTES = "antipode=".length();

  private MessageHeaders() {}

  /**
   * What a message is sent with.
   *
   * @param headers all of them; null where there are none
   * @param text the lineage that they carry; null for none
   */
  public record Sent(@Nullable Map<String, Object> headers, @Nullable String text) {
    /**
     * Returns the context in which to send: an instrumentation of OpenTelemetry sets the header
     * again, from the baggage that is current then.
     */
    public Context context() {
      Context context = Context.current();
      return text == null
          ? context
          : Baggage.fromContext(context).toBuilder()
              .put(Scope.MEMBER, text)
              .build()
              .storeInContext(context);
    }

    /** Returns whether they name the message's own write. */
    public boolean isNamed() {
      return headers != null && headers.containsKey(WRITE);
    }

    /** Returns the same with a lineage that is so many bytes shorter; null where none is. */
    public @Nullable Sent shortened(int excess) {
      if (text == null || text.length() < excess) {
        return null;
      }
      int room = text.length() - excess + MEMBER_BYTES;
      try {
        return carrying(LineageText.leaving(Lineage.deserialize(text), room));
      } catch (LineageTooLargeException error) {
        return null;
      }
    }

    private Sent carrying(String another) {
      Map<String, Object> changed = new HashMap<>(Objects.requireNonNull(headers));
      String header = MessageHeaders.text(changed.get(Headers.BAGGAGE));
      changed.put(Headers.BAGGAGE, Headers.withMember(header, another));
      return new Sent(changed, another);
    }
  }

  /** What a message says of itself: what it depends on, without and with its own write. */
  public record Received(Lineage causes, @Nullable WriteId write) {
    /** Returns what its consumer depends on. */
    public Lineage lineage() {
      return write == null ? causes : causes.append(write);
    }

    /** Returns the latest publication of its own publisher that it depends on; 0 for none. */
    public long after() {
      if (write == null) {
        return 0;
      }
      long after = 0;
      for (WriteId each : causes.writes()) {
        boolean isSame =
            each.datastore().equals(write.datastore())
                && each.key().equals(write.key())
                && each.opaqueVersion() == null;
        if (isSame && Long.compareUnsigned(each.version(), after) > 0) {
          after = each.version();
        }
      }
      return after;
    }
  }

  // What is sent.

  /**
   * Returns headers that carry the lineage of the current scope, unless the application has removed
   * it from the baggage. A lineage that they have already is sent, too, where the application has
   * put it there: an instrumentation puts there what the context has, which is older.
   *
   * @param headers the application's, which are not touched; null for none
   * @param write the message's own; null for one that names none
   */
  public static Sent outgoing(
      @Nullable Map<String, Object> headers, @Nullable WriteId write, String datastore) {
    Context context = Context.current();
    Scope scope = Scope.fromContextOrNull(context);
    String ofContext = Baggage.fromContext(context).getEntryValue(Scope.MEMBER);
    return scope == null || ofContext == null
        ? sent(headers, write, null, LineageText::leaving, ofContext, datastore)
        : sent(headers, write, scope.text(), scope::textWith, ofContext, datastore);
  }

  /** Returns headers that carry this lineage in place of the current one. */
  public static Sent carrying(
      @Nullable Map<String, Object> headers, WriteId write, Lineage lineage, String datastore) {
    String ofContext = Baggage.current().getEntryValue(Scope.MEMBER);
    boolean isNone = lineage.isEmpty() && ofContext == null;
    Scope scope = Scope.currentOrNull();
    if (scope != null) {
      scope.leaves();
    }
    String text = isNone ? null : LineageText.message(lineage);
    Function<Lineage, String> with = other -> LineageText.message(lineage.merge(other));
    return sent(headers, write, text, with, ofContext, datastore);
  }

  private static Sent sent(
      @Nullable Map<String, Object> headers,
      @Nullable WriteId write,
      @Nullable String text,
      Function<Lineage, String> with,
      @Nullable String ofContext,
      String datastore) {
    Map<String, Object> sent = headers == null ? new HashMap<>() : new HashMap<>(headers);
    sent.remove(WRITE); // One that was copied is another message's.
    if (write != null) {
      sent.put(WRITE, Lineage.of(write).serialize());
    }
    Object present = sent.get(Headers.BAGGAGE);
    String header = text(present);
    if (present != null && header == null) {
      Counts.count("baggage_replaced", datastore);
    }
    String carried = together(text, with, header, ofContext);
    if (carried != null) {
      sent.put(Headers.BAGGAGE, Headers.withMember(header, carried));
    }
    return new Sent(headers == null && sent.isEmpty() ? null : sent, carried);
  }

  /**
   * Returns the lineage to send, with what the application handed on.
   *
   * @param text the lineage to send; null for none
   * @param with the same together with another one, shortened as a whole
   */
  private static @Nullable String together(
      @Nullable String text,
      Function<Lineage, String> with,
      @Nullable String header,
      @Nullable String ofContext) {
    Lineage[] handedOn =
        (header == null ? List.<String>of() : Headers.members(List.of(header)))
            .stream()
                .filter(each -> !each.equals(ofContext) && !each.equals(text))
                .map(each -> LineageText.readable(Headers.BAGGAGE, each))
                .toArray(Lineage[]::new);
    return handedOn.length == 0 ? text : with.apply(Lineage.empty().merge(handedOn));
  }

  /** Returns headers as the application gave them, without a name that was copied. */
  public static Sent plain(@Nullable Map<String, Object> headers) {
    if (headers == null || !headers.containsKey(WRITE)) {
      return new Sent(headers, null);
    }
    Map<String, Object> own = new HashMap<>(headers);
    own.remove(WRITE);
    return new Sent(own, null);
  }

  /** Returns headers with which a message fulfils a promise. */
  public static Map<String, Object> fulfilling(
      @Nullable Map<String, Object> headers, Promise promise) {
    Map<String, Object> sent = headers == null ? new HashMap<>() : new HashMap<>(headers);
    sent.put(PROMISE, promise.token());
    return sent;
  }

  // What is received.

  /**
   * Returns what a message says of itself. What cannot be read is the mark (datastore, {@code
   * unreadable}).
   *
   * @param datastore from which it was consumed
   */
  public static Received received(@Nullable Map<String, Object> headers, String datastore) {
    Lineage causes = incoming(headers, datastore);
    try {
      return new Received(causes, ownWrite(headers));
    } catch (IllegalArgumentException error) {
      Lineage unreadable = LineageText.unreadable(datastore, String.valueOf(error.getMessage()));
      return new Received(causes.merge(unreadable), null);
    }
  }

  /** Returns whether a message says anything of this library's, readable or not. */
  public static boolean hasLineage(@Nullable Map<String, Object> headers) {
    if (headers == null || headers.containsKey(WRITE)) {
      return headers != null;
    }
    Object present = headers.get(Headers.BAGGAGE);
    String header = text(present);
    return present != null && (header == null || Headers.hasMember(header));
  }

  private static Lineage incoming(@Nullable Map<String, Object> headers, String datastore) {
    Object present = headers == null ? null : headers.get(Headers.BAGGAGE);
    if (present == null) {
      return Lineage.empty();
    }
    String header = text(present);
    if (header == null) {
      return LineageText.unreadable(datastore, present.getClass().getSimpleName());
    }
    Lineage[] found =
        Headers.members(List.of(header)).stream()
            .distinct()
            .map(each -> LineageText.readable(datastore, each))
            .toArray(Lineage[]::new);
    return Lineage.empty().merge(found);
  }

  /**
   * Returns the message's own write; null where it names none.
   *
   * @throws IllegalArgumentException if what it names is no single write with a number
   */
  public static @Nullable WriteId ownWrite(@Nullable Map<String, Object> headers) {
    Object present = headers == null ? null : headers.get(WRITE);
    if (present == null) {
      return null;
    }
    Lineage named = decoded(present);
    WriteId write = named.writes().size() == 1 ? named.writes().get(0) : null;
    if (write == null || write.opaqueVersion() != null) {
      throw new IllegalArgumentException("the message does not name one write with a number");
    }
    return write;
  }

  /**
   * Returns the promise that a message fulfils; null where it fulfils none.
   *
   * @throws IllegalArgumentException if the header is no token
   */
  static @Nullable Promise ownPromise(@Nullable Map<String, Object> headers) {
    Object present = headers == null ? null : headers.get(PROMISE);
    if (present == null) {
      return null;
    }
    String token = text(present);
    try {
      return Promise.parse(Objects.requireNonNullElse(token, ""));
    } catch (LineageDecodeException error) {
      throw new IllegalArgumentException(error.code(), error);
    }
  }

  private static Lineage decoded(Object header) {
    String text = text(header);
    try {
      return LineageText.received(Objects.requireNonNullElse(text, ""));
    } catch (LineageDecodeException error) {
      throw new IllegalArgumentException(error.code(), error);
    }
  }

  /** Returns a header as text; null for a type that no propagator writes. */
  public static @Nullable String text(@Nullable Object header) {
    if (header instanceof byte[] bytes) {
      return new String(bytes, StandardCharsets.UTF_8);
    }
    return header instanceof String text ? text : null;
  }
}
