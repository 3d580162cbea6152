package io.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.baggage.Baggage;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullSource;

/** Lineages in the messages of a stream. */
class EventHeadersTest {
  private static final WriteId POST = WriteId.of("posts", "k", 1).writtenAt(498_669);
  private static final WriteId USER = WriteId.of("users", "k", 1).writtenAt(498_669);
  private static final WriteId ORDER = WriteId.of("orders", "k", 1).writtenAt(498_669);

  /** Each its own; what is handled is apart from the scope around it, and of the next one. */
  @Test
  void aMessageHasWhatItsSenderDependsOnThen() {
    Map<String, String> first;
    Map<String, String> second;
    try (ScopeBlock sender = Antipode.scope(Lineage.of(POST))) {
      first = EventHeaders.current();
      Antipode.append(USER);
      second = EventHeaders.current();
    }
    assertThat(first)
        .containsExactly(Map.entry("baggage", "antipode=" + Lineage.of(POST).serialize()));
    try (ScopeBlock around = Antipode.scope()) {
      ScopeBlock handled = EventHeaders.scope(first);
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST));
      Antipode.append(ORDER);
      handled.close();
      assertThat(handled.scope().isOpen()).isFalse();
      try (ScopeBlock next = EventHeaders.scope(second)) {
        assertThat(Antipode.current()).isEqualTo(Lineage.of(POST, USER));
      }
      assertThat(around.scope().isOpen()).isTrue();
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
    }
  }

  /**
   * A parser's map of a websocket's message, a map of STOMP's or HTTP's headers, which has lists,
   * and one without case; other members stay out, and a lineage that stands twice is one.
   */
  @Test
  void headersMayBeOfAnyMapThatFrameworksHave() {
    String post = "antipode=" + Lineage.of(POST).serialize();
    String user = "user=7, antipode=" + Lineage.of(USER).serialize() + ";p=1";
    Map<String, Object> parsed = new LinkedHashMap<>(Map.of("id", 7, "timestamp", 1.5));
    parsed.put("Baggage", post);
    Map<String, String> anyCase = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    anyCase.put("BAGGAGE", post);
    for (Map<?, ?> headers :
        List.of(parsed, anyCase, Map.of("baggage", List.of(post, post), "Baggage", post))) {
      try (ScopeBlock event = EventHeaders.scope(headers)) {
        assertThat(Antipode.current()).isEqualTo(Lineage.of(POST));
      }
    }
    try (ScopeBlock event = EventHeaders.scope(Map.of("baggage", List.of(post, user)))) {
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST, USER));
    }
  }

  /** Sent outside of a scope, where the lineage was discarded or is not to be sent. */
  @Test
  void whereNoLineageIsSentThereAreNoHeaders() {
    assertThat(EventHeaders.current()).isEmpty();
    try (ScopeBlock sender = Antipode.scope(Lineage.of(POST))) {
      try (var cleared = Baggage.empty().makeCurrent()) {
        assertThat(EventHeaders.current()).isEmpty();
      }
      Antipode.stop();
      assertThat(EventHeaders.current()).isEmpty();
    }
  }

  static List<Map<String, ?>> unlabelled() {
    return List.of(Map.of(), Map.of("baggage", "user=7"), Map.of("baggage", List.of()));
  }

  /** A message of who has no library is handled in an empty scope. */
  @ParameterizedTest
  @NullSource
  @MethodSource("unlabelled")
  void withoutALineageAMessageHasAnEmptyScope(Map<String, ?> headers) {
    try (ScopeBlock around = Antipode.scope(Lineage.of(POST));
        ScopeBlock event = EventHeaders.scope(headers)) {
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
    }
  }

  static List<Object> forged() {
    Map<Object, Object> several = new HashMap<>();
    several.put("baggage", "antipode=" + Lineage.of(POST).serialize());
    several.put("Baggage", 7);
    several.put(null, 7);
    String[] many = new String[100_000];
    Arrays.fill(many, "antipode=1~~");
    return List.of(
        Map.of("baggage", "antipode=1~~"),
        Map.of("baggage", 7),
        Map.of("baggage", Map.of("antipode", "1")),
        Map.of("baggage", List.of("user=7", 7)),
        Collections.singletonMap("baggage", null),
        Map.of("baggage", Collections.singletonList(null)),
        List.of("baggage"),
        "antipode=1",
        Map.of("baggage", "antipode="),
        Map.of("baggage", "antipode"),
        Map.of("baggage", Arrays.asList(many)),
        several);
  }

  /** Whoever made them: no error, and a barrier knows that something is missing. */
  @ParameterizedTest
  @MethodSource("forged")
  void headersThatCannotBeReadMakeItIncomplete(Object headers) {
    try (ScopeBlock event = EventHeaders.scope(headers)) {
      assertThat(Antipode.current().incomplete())
          .containsExactly(new Incomplete("baggage", "unreadable"));
    }
  }

  /** As every lineage that leaves: so many branches run, and no more is named than may be. */
  @Test
  void aMessageIsBoundedAsEveryLineageThatLeaves() {
    Settings held = Settings.current();
    Settings.configure(settings -> settings.withEgress(Set.of("posts")));
    Map<String, String> headers;
    try (ScopeBlock sender = Antipode.scope(Lineage.of(POST, USER))) {
      sender.scope().began();
      headers = EventHeaders.current();
    } finally {
      Settings.configure(settings -> held);
    }
    try (ScopeBlock event = EventHeaders.scope(headers)) {
      assertThat(Antipode.current().openBranches()).isEqualTo(1);
      assertThat(Antipode.current().writes()).containsExactly(POST);
      assertThat(Antipode.current().incomplete()).containsExactly(new Incomplete("", "egress"));
    }
  }

  /** There is no position yet: what is told leaves too early. */
  @Test
  void aMessageBeforeTheCommitIsCounted() {
    Counts.Metric told = new Counts.Metric("sent_before_commit", "posts");
    long before = Counts.all().getOrDefault(told, 0L);
    Object connection = new Object();
    try (ScopeBlock sender = Antipode.scope(Lineage.of(USER))) {
      Recording.recordUncommitted("posts", connection, true);
      assertThat(EventHeaders.current()).isNotEmpty();
      Recording.recordUncommitted("posts", connection, false);
    }
    assertThat(Counts.all()).containsEntry(told, before + 1);
  }
}
