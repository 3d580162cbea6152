package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.dryrun.FindingId;
import io.antipode.lineage.Lineage;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.propagation.Headers;
import io.antipode.propagation.HttpCall;
import io.antipode.propagation.IncomingRequest;
import io.antipode.propagation.OutgoingCall;
import io.antipode.propagation.Responses;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** Level 3: what headers say and carry, how calls end, scopes and hosts. By kind of vector. */
final class HeaderVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private HeaderVectors() {}

  /** Returns what this language makes of one vector. */
  static ObjectNode judge(String kind, JsonNode given) throws IOException {
    return switch (kind) {
      case "requests_in" -> requestIn(given);
      case "calls" -> calls(given);
      case "responses_out" -> responseOut(given);
      case "sessions" -> Sessions.judge(given);
      case "session_signatures" -> Sessions.sign(given);
      case "strips" -> strip(given);
      case "hosts" -> host(given);
      case "refused_hosts" -> refusedHost(given);
      case "scopes" -> scope(given);
      case "finding_ids" ->
          JSON.objectNode().put("id", FindingId.of(Values.texts(given.path("parts"))));
      case "verdicts" -> Verdicts.judge(given);
      default -> throw AgentException.unsupported("headers of the kind " + kind);
    };
  }

  /** Begins a request that came with these headers, in the current context. */
  static IncomingRequest received(JsonNode pairs) {
    Map<String, List<String>> headers = HeaderMap.of(pairs);
    return IncomingRequest.begin(
        headers.getOrDefault(Headers.BAGGAGE, List.of()),
        headers.containsKey(Headers.SENT),
        null,
        carrier -> false);
  }

  private static Context extracted(JsonNode pairs) {
    return AntipodePropagator.baggage()
        .extract(Context.current(), HeaderMap.of(pairs), HeaderMap.GETTER);
  }

  private static ObjectNode requestIn(JsonNode given) {
    Context context = extracted(given.path("headers"));
    ObjectNode value = JSON.objectNode();
    value.set(
        "lineage", Values.json(Objects.requireNonNull(Scope.fromContextOrNull(context)).lineage()));
    ObjectNode others = value.putObject("others");
    Baggage.fromContext(context).forEach((name, entry) -> others.put(name, entry.getValue()));
    others.remove(Scope.MEMBER);
    return value;
  }

  private static ObjectNode responseOut(JsonNode given) {
    try (IncomingRequest request = received(given.path("headers"))) {
      // As they are: a write that is recorded here states its hour.
      given.path("adds").forEach(write -> request.scope().merge(Lineage.of(Values.write(write))));
      return JSON.objectNode().put("answer", request.answer());
    }
  }

  private static ObjectNode strip(JsonNode given) {
    Map<String, List<String>> headers = HeaderMap.of(given.path("headers"));
    Headers.strip(headers);
    return JSON.objectNode().set("kept", pairs(headers));
  }

  private static ArrayNode pairs(Map<String, List<String>> headers) {
    ArrayNode pairs = JSON.arrayNode();
    new TreeMap<>(headers)
        .forEach(
            (name, values) ->
                values.stream().sorted().forEach(value -> pairs.addArray().add(name).add(value)));
    return pairs;
  }

  // Calls.

  private static ObjectNode calls(JsonNode given) {
    OutgoingCall.forgetPeers();
    Settings before = configured(given.path("settings"));
    try {
      ObjectNode value = JSON.objectNode();
      ArrayNode calls = value.putArray("calls");
      given.path("calls").forEach(call -> calls.add(called(given.path("scope"), call)));
      return value;
    } finally {
      Settings.configure(held -> before);
    }
  }

  private static Settings configured(JsonNode settings) {
    return Settings.configure(held -> Configuration.changed(held, settings));
  }

  private static ObjectNode called(JsonNode start, JsonNode call) {
    try (ScopeBlock block = Antipode.scope(Values.lineage(start))) {
      HttpCall sent = begun(call);
      Map<String, List<String>> headers = HeaderMap.of(call.path("headers"));
      sent.outfit(headers);
      if (call.has("ended")) {
        block.scope().end();
      }
      JsonNode end = call.path("end");
      if (end.isArray()) {
        end.forEach(attempt -> end(sent, attempt));
      } else if (end.isObject()) {
        end(sent, end);
      }
      ObjectNode value = JSON.objectNode();
      value.set("sent", pairs(headers));
      return value.set("after", Values.json(block.scope().lineage()));
    }
  }

  /** Begins a call, in the parts into which a client takes its URL. */
  private static HttpCall begun(JsonNode call) {
    try {
      URL url = new URL(Values.text(call, "url"));
      return HttpCall.begin(url.getProtocol(), url.getHost(), url.getPort(), url.getPath(), null);
    } catch (MalformedURLException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private static void end(HttpCall sent, JsonNode end) {
    if (end.has("unknown")) {
      sent.failed();
    } else {
      sent.answered(
          end.path("status").asInt(),
          end.has("lineage") ? List.of(Values.text(end, "lineage")) : List.of());
    }
  }

  // Hosts.

  /**
   * Sends a call from a scope, and returns by its headers whether the host may have the lineage.
   */
  private static ObjectNode host(JsonNode given) {
    Settings before = configured(JSON.objectNode().set("egress_hosts", given.path("egress_hosts")));
    try (ScopeBlock block = Antipode.scope()) {
      Map<String, List<String>> headers = HeaderMap.of(JSON.arrayNode());
      begun(given).outfit(headers);
      return JSON.objectNode().put("sent", headers.containsKey(Headers.SENT));
    } finally {
      Settings.configure(held -> before);
    }
  }

  private static ObjectNode refusedHost(JsonNode given) {
    try {
      Settings unused = Settings.defaults().withEgressHosts(Values.texts(given.path("entry")));
      return JSON.objectNode().putNull("code");
    } catch (ConfigurationException error) {
      return JSON.objectNode().put("code", error.code());
    }
  }

  // Scopes.

  @SuppressWarnings("MustBeClosedChecker") // They are closed after the script.
  private static ObjectNode scope(JsonNode given) {
    List<io.opentelemetry.context.Scope> entered = new ArrayList<>();
    ObjectNode value = JSON.objectNode();
    ArrayNode holds = value.putArray("holds");
    try {
      entered.add(Context.root().makeCurrent());
      for (JsonNode step : given.path("steps")) {
        switch (Values.text(step, "op")) {
          case "extract" -> entered.add(extracted(step.path("headers")).makeCurrent());
          case "holds" -> holds.add(Values.json(Antipode.current()));
          default -> take(step);
        }
      }
      return value;
    } finally {
      for (int nth = entered.size() - 1; nth >= 0; nth--) {
        entered.get(nth).close();
      }
    }
  }

  private static void take(JsonNode step) {
    switch (Values.text(step, "op")) {
      case "write" -> Recording.recordWrite(Values.write(step.path("write")));
      case "mark" ->
          Recording.markIncomplete(Values.text(step, "subject"), Values.text(step, "reason"));
      case "answered" -> {
        Lineage unused =
            Responses.extract(Map.of(Headers.LINEAGE, List.of(Values.text(step, "text"))), "");
      }
      case "end" -> {
        Scope held = Scope.currentOrNull();
        if (held != null) {
          held.end();
        }
      }
      case "stop" -> Antipode.stop();
      default -> throw AgentException.senseless("no step " + step.path("op"));
    }
  }
}
