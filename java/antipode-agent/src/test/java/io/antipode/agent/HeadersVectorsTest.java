package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
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

  private static JsonNode judged(String kind, JsonNode vector) {
    try {
      return HeaderVectors.judge(kind, vector);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static List<JsonNode> list(JsonNode values) {
    List<JsonNode> list = new ArrayList<>();
    values.forEach(list::add);
    return list;
  }

  @TestFactory
  Stream<DynamicTest> aRequestStartsFromWhatItsHeadersSay() {
    return Vectors.tests(
        FOLDER,
        "requests_in",
        vector -> {
          JsonNode found = judged("requests_in", vector);
          assertThat(Values.lineage(found.get("lineage")))
              .isEqualTo(Values.lineage(vector.get("lineage")));
          if (vector.has("others")) {
            assertThat(found.get("others")).isEqualTo(vector.get("others"));
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aCallCarriesTheLineageAndItsEndIsJudged() {
    return Vectors.tests(
        FOLDER,
        "calls",
        vector -> {
          JsonNode calls = judged("calls", vector).get("calls");
          assertThat(calls).hasSameSizeAs(vector.get("calls"));
          for (int nth = 0; nth < calls.size(); nth++) {
            JsonNode call = vector.get("calls").get(nth);
            assertThat(list(calls.get(nth).get("sent")))
                .containsExactlyInAnyOrderElementsOf(list(call.get("sent")));
            if (call.has("after")) {
              assertThat(Values.lineage(calls.get(nth).get("after")))
                  .isEqualTo(Values.lineage(call.get("after")));
            }
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> anAnswerBringsBackWhatTheRequestAdded() {
    return Vectors.tests(
        FOLDER,
        "responses_out",
        vector ->
            assertThat(judged("responses_out", vector).get("answer"))
                .isEqualTo(vector.get("answer")));
  }

  @TestFactory
  Stream<DynamicTest> aGatewayLeavesNothingOfOurs() {
    return Vectors.tests(
        FOLDER,
        "strips",
        vector ->
            assertThat(list(judged("strips", vector).get("kept")))
                .containsExactlyInAnyOrderElementsOf(list(vector.get("kept"))));
  }

  @TestFactory
  Stream<DynamicTest> aLineageGoesToTheHostsOfTheSetting() {
    return Vectors.tests(
        FOLDER,
        "hosts",
        vector -> assertThat(judged("hosts", vector).get("sent")).isEqualTo(vector.get("sent")));
  }

  @TestFactory
  Stream<DynamicTest> whatNamesNoHostIsRefused() {
    return Vectors.entries(
        FOLDER,
        "refused_hosts",
        entry -> {
          JsonNode given = JsonNodeFactory.instance.objectNode().put("entry", entry);
          assertThat(judged("refused_hosts", given).get("code").asText())
              .isEqualTo("configuration");
        });
  }

  @TestFactory
  Stream<DynamicTest> scopesBeginJoinAndEnd() {
    return Vectors.tests(
        FOLDER,
        "scopes",
        script -> {
          List<Lineage> expected =
              list(script.get("steps")).stream()
                  .filter(step -> step.get("op").asText().equals("holds"))
                  .map(step -> Values.lineage(step.get("lineage")))
                  .toList();
          assertThat(list(judged("scopes", script).get("holds")))
              .map(held -> hourless(Values.lineage(held)))
              .isEqualTo(expected);
        });
  }

  private static Lineage hourless(Lineage lineage) {
    Lineage.Builder result = Lineage.builder();
    lineage.writes().stream().map(write -> write.writtenAt(0)).forEach(result::write);
    lineage.incomplete().forEach(result::incomplete);
    return result.build();
  }
}
