package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.propagation.Headers;
import io.antipode.propagation.Responses;
import io.antipode.request.Scope;
import io.opentelemetry.context.Context;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The scopes that are open, and what goes in and out of them. Thread-safe. */
final class Scopes {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final Map<String, Held> open = new ConcurrentHashMap<>();
  private final AtomicInteger handles = new AtomicInteger();

  /**
   * A scope, the context that it is in with the baggage of others, and what it joins at its end.
   */
  private record Held(Scope scope, Context context, @Nullable Scope outer) {
    void close() {
      if (outer == null) {
        scope.end();
      } else {
        scope.join(outer);
      }
    }
  }

  /** Runs something in the scope of a request, or outside of any where it names none. */
  <T> T within(JsonNode request, Callable<T> action) throws Exception {
    if (!request.hasNonNull("scope")) {
      return action.call();
    }
    try (io.opentelemetry.context.Scope entered = held(request).context.makeCurrent()) {
      return action.call();
    }
  }

  /** Returns the handles of those that are open. */
  Set<String> open() {
    return open.keySet();
  }

  private Held held(JsonNode request) {
    String handle = Values.text(request, "scope");
    Held held = open.get(handle);
    if (held == null) {
      throw AgentException.senseless("no open scope " + handle);
    }
    return held;
  }

  private static Held begun(Scope scope, Context around, @Nullable Scope outer) {
    return new Held(scope, scope.storeInContext(around), outer);
  }

  private ObjectNode hold(Held held) {
    String handle = "s" + handles.incrementAndGet();
    open.put(handle, held);
    return JSON.objectNode().put("scope", handle);
  }

  // The operations.

  JsonNode open(JsonNode request) {
    if (request.hasNonNull("headers")) {
      Context context =
          AntipodePropagator.baggage()
              .extract(Context.root(), HeaderMap.of(request.get("headers")), HeaderMap.GETTER);
      return hold(
          new Held(Objects.requireNonNull(Scope.fromContextOrNull(context)), context, null));
    }
    Lineage start =
        request.hasNonNull("text")
            ? LineageText.received(Values.text(request, "text"))
            : Lineage.empty();
    return hold(begun(Scope.startingFrom(start), Context.root(), null));
  }

  JsonNode close(JsonNode request) {
    Held held = held(request);
    open.remove(Values.text(request, "scope"));
    held.close();
    return NullNode.instance;
  }

  JsonNode lineage(JsonNode request) {
    return TextNode.valueOf(held(request).scope.lineage().serialize());
  }

  JsonNode mergeInto(JsonNode request) throws Exception {
    return within(
        request,
        () -> {
          Antipode.transfer(Lineage.deserialize(Values.text(request, "text")));
          return NullNode.instance;
        });
  }

  JsonNode requestHeaders(JsonNode request) throws Exception {
    Map<String, String> carrier = new TreeMap<>();
    HeaderMap.of(request.path("headers"))
        .forEach((name, values) -> carrier.put(name, String.join(",", values)));
    return within(
        request,
        () -> {
          AntipodePropagator.baggage()
              .inject(
                  Context.current(),
                  carrier,
                  (into, name, value) -> Objects.requireNonNull(into).put(name, value));
          return pairs(carrier);
        });
  }

  JsonNode responseHeaders(JsonNode request) throws Exception {
    return within(
        request,
        () -> {
          String answer = Responses.inject();
          return pairs(answer == null ? Map.of() : Map.of(Headers.LINEAGE, answer));
        });
  }

  JsonNode receive(JsonNode request) throws Exception {
    return within(
        request,
        () -> {
          Responses.extract(HeaderMap.of(Values.argument(request, "headers")), "");
          return NullNode.instance;
        });
  }

  JsonNode fulfilling(JsonNode request) {
    Promise promise = Promise.parse(Values.text(request, "token"));
    Held outer = held(request);
    return hold(begun(outer.scope.fulfilling(promise), outer.context, outer.scope))
        .set("promise", Values.json(promise));
  }

  JsonNode promise(JsonNode request) throws Exception {
    String datastore = Values.text(request, "datastore");
    double expiresInS = Values.argument(request, "expires_in_s").asDouble();
    return within(
        request,
        () -> {
          Promise promise = Antipode.promise(datastore, Configuration.duration(expiresInS));
          return JSON.objectNode()
              .put("token", promise.token())
              .set("promise", Values.json(promise));
        });
  }

  // Headers.

  private static ArrayNode pairs(Map<String, String> headers) {
    ArrayNode pairs = JSON.arrayNode();
    headers.forEach((name, value) -> pairs.addArray().add(name).add(value));
    return pairs;
  }
}
