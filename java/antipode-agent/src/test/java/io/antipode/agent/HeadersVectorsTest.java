package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Lineage;
import io.antipode.PeerAnswers;
import io.antipode.Recording;
import io.antipode.Scope;
import io.antipode.ScopeBlock;
import io.antipode.Settings;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.propagation.Headers;
import io.antipode.propagation.HttpCall;
import io.antipode.propagation.IncomingRequest;
import io.antipode.propagation.OutgoingCall;
import io.antipode.propagation.Responses;
import io.antipode.runtime.EgressHosts;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Level 3: headers in and out, what calls leave behind, scopes and hosts. */
class HeadersVectorsTest {
  private static final String FOLDER = "L3-headers";

  @AfterEach
  void noScopeIsCurrent() {
    assertThat(Scope.isIn(Context.current())).isFalse();
  }

  private static Map<String, List<String>> headers(JsonNode pairs) {
    Map<String, List<String>> headers = new LinkedHashMap<>();
    pairs.forEach(
        pair ->
            headers
                .computeIfAbsent(pair.get(0).asText(), name -> new ArrayList<>())
                .add(pair.get(1).asText()));
    return headers;
  }

  private static Context extracted(JsonNode pairs) {
    return AntipodePropagator.baggage()
        .extract(Context.current(), headers(pairs), HeaderMap.GETTER);
  }

  private static Settings settings(JsonNode given) {
    Settings settings = Settings.defaults();
    if (given.has("max_lineage_bytes")) {
      settings = settings.withMaxLineageBytes(given.get("max_lineage_bytes").asInt());
    }
    if (given.has("egress")) {
      settings = settings.withEgress(Values.texts(given.get("egress")));
    }
    if (given.has("egress_hosts")) {
      settings = settings.withEgressHosts(Values.texts(given.get("egress_hosts")));
    }
    Map<String, PeerAnswers> peers = new HashMap<>();
    given
        .path("peers")
        .properties()
        .forEach(
            entry ->
                peers.put(
                    entry.getKey(),
                    PeerAnswers.valueOf(entry.getValue().asText().toUpperCase(Locale.ROOT))));
    return settings.withPeers(peers);
  }

  private static URL url(String text) {
    try {
      return new URL(text);
    } catch (MalformedURLException error) {
      throw new IllegalArgumentException(error);
    }
  }

  @TestFactory
  Stream<DynamicTest> aRequestStartsFromWhatItsHeadersSay() {
    return Vectors.tests(
        FOLDER,
        "requests_in",
        vector -> {
          Context context = extracted(vector.get("headers"));
          Scope scope = Objects.requireNonNull(Scope.fromContextOrNull(context));
          assertThat(scope.lineage()).isEqualTo(Values.lineage(vector.get("lineage")));
          if (vector.has("others")) {
            Map<String, String> others = new HashMap<>();
            Baggage.fromContext(context)
                .forEach((name, entry) -> others.put(name, entry.getValue()));
            others.remove(Scope.MEMBER);
            Map<String, String> expected = new HashMap<>();
            vector
                .get("others")
                .properties()
                .forEach(entry -> expected.put(entry.getKey(), entry.getValue().asText()));
            assertThat(others).isEqualTo(expected);
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aCallCarriesTheLineageAndItsEndIsJudged() {
    return Vectors.tests(
        FOLDER,
        "calls",
        vector -> {
          OutgoingCall.forgetPeers();
          Settings before = Settings.configure(held -> settings(vector.path("settings")));
          try {
            vector.get("calls").forEach(call -> call(vector.get("scope"), call));
          } finally {
            Settings.configure(held -> before);
          }
        });
  }

  private static void call(JsonNode start, JsonNode call) {
    try (ScopeBlock block = Antipode.scope(Values.lineage(start))) {
      URL url = url(call.get("url").asText());
      HttpCall sent =
          HttpCall.begin(url.getProtocol(), url.getHost(), url.getPort(), url.getPath(), null);
      Map<String, List<String>> headers = headers(call.get("headers"));
      sent.outfit(headers);
      assertThat(headers).isEqualTo(headers(call.get("sent")));
      if (call.has("ended")) {
        block.scope().end();
      }
      JsonNode end = call.path("end");
      if (end.isArray()) {
        end.forEach(attempt -> end(sent, attempt));
      } else if (end.isObject()) {
        end(sent, end);
      }
      if (call.has("after")) {
        assertThat(block.scope().lineage()).isEqualTo(Values.lineage(call.get("after")));
      }
    }
  }

  private static void end(HttpCall sent, JsonNode end) {
    if (end.has("unknown")) {
      sent.failed();
    } else {
      sent.answered(
          end.get("status").asInt(),
          end.has("lineage") ? List.of(end.get("lineage").asText()) : List.of());
    }
  }

  @TestFactory
  Stream<DynamicTest> anAnswerBringsBackWhatTheRequestAdded() {
    return Vectors.tests(
        FOLDER,
        "responses_out",
        vector -> {
          Map<String, List<String>> headers = headers(vector.get("headers"));
          try (IncomingRequest request =
              IncomingRequest.begin(
                  headers.getOrDefault(Headers.BAGGAGE, List.of()),
                  headers.containsKey(Headers.SENT),
                  null,
                  carrier -> false)) {
            // As they are: a write that is recorded here states its hour.
            vector
                .get("adds")
                .forEach(write -> request.scope().merge(Lineage.of(Values.write(write))));
            assertThat(request.answer())
                .isEqualTo(vector.get("answer").isNull() ? null : vector.get("answer").asText());
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aGatewayLeavesNothingOfOurs() {
    return Vectors.tests(
        FOLDER,
        "strips",
        vector -> {
          Map<String, List<String>> headers = headers(vector.get("headers"));
          Headers.strip(headers);
          assertThat(headers).isEqualTo(headers(vector.get("kept")));
        });
  }

  @TestFactory
  Stream<DynamicTest> aLineageGoesToTheHostsOfTheSetting() {
    return Vectors.tests(
        FOLDER,
        "hosts",
        vector -> {
          URL url = url(vector.get("url").asText());
          Set<String> hosts = Set.copyOf(Values.texts(vector.get("egress_hosts")));
          int port = url.getPort() < 0 ? url.getDefaultPort() : url.getPort();
          assertThat(EgressHosts.name(hosts, url.getHost(), port))
              .isEqualTo(vector.get("sent").asBoolean());
          assertThat(Settings.defaults().withEgressHosts(hosts).egressHosts()).isEqualTo(hosts);
        });
  }

  @TestFactory
  Stream<DynamicTest> whatNamesNoHostIsRefused() {
    return Vectors.entries(
        FOLDER,
        "refused_hosts",
        entry ->
            assertThatThrownBy(() -> Settings.defaults().withEgressHosts(List.of(entry)))
                .isInstanceOf(ConfigurationException.class));
  }

  @TestFactory
  Stream<DynamicTest> scopesBeginJoinAndEnd() {
    return Vectors.tests(
        FOLDER,
        "scopes",
        script -> {
          List<io.opentelemetry.context.Scope> entered = new ArrayList<>();
          try {
            script.get("steps").forEach(step -> step(step, entered));
          } finally {
            for (int i = entered.size() - 1; i >= 0; i--) {
              entered.get(i).close();
            }
          }
        });
  }

  @SuppressWarnings("MustBeClosedChecker") // They are closed after the script.
  private static void step(JsonNode step, List<io.opentelemetry.context.Scope> entered) {
    switch (step.get("op").asText()) {
      case "extract" -> entered.add(extracted(step.get("headers")).makeCurrent());
      case "write" -> Recording.recordWrite(Values.write(step.get("write")));
      case "mark" ->
          Recording.markIncomplete(step.get("subject").asText(), step.get("reason").asText());
      case "answered" ->
          Responses.extract(Map.of(Headers.LINEAGE, List.of(step.get("text").asText())), "");
      case "end" -> Objects.requireNonNull(Scope.currentOrNull()).end();
      case "stop" -> Antipode.stop();
      case "holds" ->
          assertThat(hourless(Antipode.current())).isEqualTo(Values.lineage(step.get("lineage")));
      default -> throw new IllegalArgumentException("no step " + step.get("op"));
    }
  }

  private static Lineage hourless(Lineage lineage) {
    Lineage.Builder result = Lineage.builder();
    lineage.writes().stream().map(write -> write.mintedAt(0)).forEach(result::write);
    lineage.incomplete().forEach(result::incomplete);
    return result.build();
  }
}
