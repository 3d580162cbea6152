package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.antipode.agent.Vectors.Check;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** Level 3: headers in and out, sessions, what calls leave behind, scopes, hosts, dry runs. */
final class HeaderChecks {
  static final Map<String, Check> KINDS =
      Map.ofEntries(
          Map.entry("requests_in", HeaderChecks::aRequestStartsFromWhatItsHeadersSay),
          Map.entry("calls", HeaderChecks::aCallCarriesTheLineageAndItsEndIsJudged),
          Map.entry("responses_out", HeaderChecks::anAnswerBringsBackWhatTheRequestAdded),
          Map.entry("sessions", HeaderChecks::cookiesAgeAndAreSetRemovedOrLeftAlone),
          Map.entry("session_signatures", HeaderChecks::servicesThatShareKeysShareACookie),
          Map.entry("strips", HeaderChecks::aGatewayLeavesNothingOfOurs),
          Map.entry("hosts", HeaderChecks::aLineageGoesToTheHostsOfTheSetting),
          Map.entry("refused_hosts", HeaderChecks::whatNamesNoHostIsRefused),
          Map.entry("scopes", HeaderChecks::scopesBeginJoinAndEnd),
          Map.entry("finding_ids", HeaderChecks::aFindingIsNamedByItsParts),
          Map.entry("verdicts", HeaderChecks::aReadIsJudgedByWhatGuardsIt),
          Map.entry("records", HeaderChecks::reportsAreMadeByPythonAlone));

  private HeaderChecks() {}

  private static JsonNode judged(String kind, JsonNode vector) throws IOException {
    JsonNode found = Vectors.sent(HeaderVectors.judge(kind, vector));
    assertThat(Scope.isIn(Context.current())).as("whether a scope is current").isFalse();
    return found;
  }

  private static void aRequestStartsFromWhatItsHeadersSay(String store, JsonNode vector)
      throws IOException {
    JsonNode found = judged("requests_in", vector);
    assertThat(lineage(found, "lineage")).isEqualTo(lineage(vector, "lineage"));
    if (vector.has("others")) {
      assertThat(found.get("others")).isEqualTo(vector.get("others"));
    }
  }

  private static Lineage lineage(JsonNode holder, String name) {
    return Values.lineage(holder.get(name));
  }

  private static void aCallCarriesTheLineageAndItsEndIsJudged(String store, JsonNode vector)
      throws IOException {
    JsonNode calls = judged("calls", vector).get("calls");
    assertThat(calls).hasSameSizeAs(vector.get("calls"));
    for (int nth = 0; nth < calls.size(); nth++) {
      JsonNode call = vector.get("calls").get(nth);
      assertSameElements(calls.get(nth), call, "sent");
      if (call.has("after")) {
        assertThat(lineage(calls.get(nth), "after")).isEqualTo(lineage(call, "after"));
      }
    }
  }

  private static void assertSameElements(JsonNode found, JsonNode expected, String name) {
    assertThat(Vectors.list(found.get(name)))
        .as(name)
        .containsExactlyInAnyOrderElementsOf(Vectors.list(expected.path(name)));
  }

  private static void anAnswerBringsBackWhatTheRequestAdded(String store, JsonNode vector)
      throws IOException {
    assertThat(judged("responses_out", vector).get("answer")).isEqualTo(vector.get("answer"));
  }

  private static void cookiesAgeAndAreSetRemovedOrLeftAlone(String store, JsonNode vector)
      throws IOException {
    JsonNode found = judged("sessions", vector).get("requests");
    JsonNode requests = vector.get("requests");
    assertThat(found).hasSameSizeAs(requests);
    for (int nth = 0; nth < requests.size(); nth++) {
      JsonNode request = requests.get(nth);
      JsonNode ended = found.get(nth);
      assertThat(lineage(ended, "starts")).isEqualTo(lineage(request, "starts"));
      assertThat(ended.get("counts"))
          .isEqualTo(request.has("counts") ? request.get("counts") : empty());
      assertThat(ended.get("content")).isEqualTo(request.get("content"));
      assertThat(ended.get("lasts").asBoolean())
          .isEqualTo(!request.get("content").asText("").isEmpty());
      if (!request.get("content").isNull()) {
        assertThat(ended.get("cache_control")).isEqualTo(request.get("cache_control"));
      }
      if (request.has("token")) {
        assertThat(ended.get("token")).isEqualTo(request.get("token"));
      }
    }
  }

  private static JsonNode empty() {
    return JsonNodeFactory.instance.objectNode();
  }

  private static void servicesThatShareKeysShareACookie(String store, JsonNode vector)
      throws IOException {
    JsonNode found = judged("session_signatures", vector);
    assertThat(found.get("value")).isEqualTo(vector.get("value"));
    assertThat(found.get("read")).isEqualTo(vector.get("read"));
  }

  private static void aGatewayLeavesNothingOfOurs(String store, JsonNode vector)
      throws IOException {
    assertSameElements(judged("strips", vector), vector, "kept");
  }

  private static void aLineageGoesToTheHostsOfTheSetting(String store, JsonNode vector)
      throws IOException {
    assertThat(judged("hosts", vector).get("sent")).isEqualTo(vector.get("sent"));
  }

  private static void whatNamesNoHostIsRefused(String store, JsonNode entry) throws IOException {
    JsonNode given = JsonNodeFactory.instance.objectNode().set("entry", entry);
    assertThat(judged("refused_hosts", given).get("code").asText()).isEqualTo("configuration");
  }

  private static void scopesBeginJoinAndEnd(String store, JsonNode script) throws IOException {
    List<Lineage> expected =
        Vectors.list(script.get("steps")).stream()
            .filter(step -> step.get("op").asText().equals("holds"))
            .map(step -> lineage(step, "lineage"))
            .toList();
    assertThat(Vectors.list(judged("scopes", script).get("holds")))
        .map(held -> hourless(Values.lineage(held)))
        .isEqualTo(expected);
  }

  private static Lineage hourless(Lineage lineage) {
    Lineage.Builder result = Lineage.builder();
    lineage.writes().stream().map(write -> write.writtenAt(0)).forEach(result::write);
    lineage.incomplete().forEach(result::incomplete);
    return result.build();
  }

  private static void aFindingIsNamedByItsParts(String store, JsonNode vector) throws IOException {
    assertThat(judged("finding_ids", vector).get("id")).isEqualTo(vector.get("id"));
  }

  private static void aReadIsJudgedByWhatGuardsIt(String store, JsonNode vector)
      throws IOException {
    JsonNode found = judged("verdicts", vector);
    List<JsonNode> expected =
        Vectors.list(vector.get("steps")).stream()
            .filter(step -> step.get("op").asText().equals("read"))
            .filter(step -> !step.path("verdict").asText("").isEmpty())
            .toList();
    assertThat(found.get("reads")).hasSameSizeAs(expected);
    for (int nth = 0; nth < expected.size(); nth++) {
      JsonNode read = found.get("reads").get(nth);
      assertThat(read.get("verdict")).isEqualTo(expected.get(nth).get("verdict"));
      assertSameElements(read, expected.get(nth), "writes");
    }
    if (vector.has("guards_after")) {
      assertThat(Vectors.list(found.get("guards")))
          .containsExactlyInAnyOrderElementsOf(Vectors.list(vector.get("guards_after")));
    }
    assertSameElements(found, vector, "counted");
    assertSameElements(found, vector, "lints");
  }

  private static void reportsAreMadeByPythonAlone(String store, JsonNode vector) {
    AgentException refused =
        catchThrowableOfType(AgentException.class, () -> HeaderVectors.judge("records", vector));
    assertThat(refused.code()).isEqualTo("unsupported");
  }
}
