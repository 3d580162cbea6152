package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Lineages;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.propagation.Headers;
import io.antipode.runtime.Time;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageBuilder;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.jspecify.annotations.Nullable;

/** What holds of any lineage, and of whatever headers. */
class ScopeLawsTest {
  private static final TextMapPropagator PROPAGATOR = AntipodePropagator.baggage();

  private enum Carrier implements TextMapGetter<Map<String, String>> {
    GETTER;

    @Override
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public @Nullable String get(@Nullable Map<String, String> carrier, String key) {
      return Objects.requireNonNull(carrier).get(key);
    }
  }

  @Provide
  Arbitrary<Lineage> lineages() {
    return Lineages.lineages();
  }

  @Provide
  Arbitrary<Map<String, String>> members() {
    Arbitrary<String> names = Arbitraries.of("tenant", "user", "a.b", "Antipode", "antipode2");
    Arbitrary<String> values = Arbitraries.strings().withCharRange(' ', '~').ofMaxLength(8);
    return Arbitraries.maps(names, values).ofMaxSize(4);
  }

  @Provide
  Arbitrary<String> headers() {
    Arbitrary<String> parts =
        Arbitraries.of(
            "antipode",
            "=",
            ",",
            ";",
            " ",
            "%",
            "%7E",
            "%zz",
            "+",
            "1",
            "~ka.5.k",
            "2~f",
            "tenant",
            "\u00e9",
            "\t",
            "antipode=1",
            "~~",
            "\"");
    return parts.list().ofMaxSize(20).map(list -> String.join("", list));
  }

  @Property(tries = 300)
  void whatIsSentIsWhatArrives(
      @ForAll("lineages") Lineage lineage, @ForAll("members") Map<String, String> members) {
    Settings held = Settings.configure(settings -> settings.withMaxLineageBytes(4_096));
    // What it says of the future is bounded by the moment in which it is received.
    var clock = Time.exchange(() -> Instant.ofEpochSecond(3_600 * 500_000L));
    try {
      Scope scope = Scope.startingFrom(lineage);
      BaggageBuilder baggage = Baggage.builder();
      members.forEach(baggage::put);
      Context context = scope.storeInContext(baggage.build().storeInContext(Context.root()));
      Map<String, String> carrier = new HashMap<>();
      PROPAGATOR.inject(context, carrier, (map, key, value) -> map.put(key, value));
      Context arrived = PROPAGATOR.extract(Context.root(), carrier, Carrier.GETTER);
      Scope found = Objects.requireNonNull(Scope.fromContextOrNull(arrived));
      assertThat(found.lineage()).isEqualTo(LineageText.received(scope.text()));
      Map<String, String> others = new HashMap<>();
      Baggage.fromContext(arrived).forEach((name, entry) -> others.put(name, entry.getValue()));
      others.remove(Scope.MEMBER);
      assertThat(others).isEqualTo(members);
      assertThat(found.answer()).as("nothing was added").isEqualTo("1");
    } finally {
      Time.exchange(clock);
      Settings.configure(settings -> held);
    }
  }

  @Property(tries = 500)
  void whateverArrivesThereIsAScopeAndNothingIsThrown(@ForAll("headers") String header) {
    Map<String, String> carrier = Map.of("baggage", header);
    Context arrived = PROPAGATOR.extract(Context.root(), carrier, Carrier.GETTER);
    Scope scope = Objects.requireNonNull(Scope.fromContextOrNull(arrived));
    Map<String, List<String>> stripped = new HashMap<>(Map.of("baggage", List.of(header)));
    Headers.strip(stripped);
    boolean named =
        List.of(header.split(",", -1)).stream()
            .anyMatch(member -> member.split("=", 2)[0].strip().equals("antipode"));
    assertThat(stripped.getOrDefault("baggage", List.of()).equals(List.of(header)))
        .isEqualTo(!named);
    if (!named) {
      assertThat(scope.lineage()).isEqualTo(Lineage.empty());
    }
  }

  @Property(tries = 200)
  void anAnswerGivesTheCallerTheWhole(
      @ForAll("lineages") Lineage sent, @ForAll("lineages") Lineage added) {
    Settings held = Settings.configure(settings -> settings.withMaxLineageBytes(4_096));
    try {
      Scope callee = Scope.ofRequest(sent, null);
      callee.merge(added);
      Scope caller = Scope.startingFrom(sent);
      caller.merge(Lineage.deserialize(callee.answer()));
      Lineage whole = sent.merge(added);
      assertThat(caller.lineage().writes()).isEqualTo(whole.writes());
      assertThat(caller.lineage().promises()).isEqualTo(whole.promises());
      assertThat(caller.lineage().incomplete()).isEqualTo(whole.incomplete());
      assertThat(caller.lineage().unknown()).isEqualTo(whole.unknown());
    } finally {
      Settings.configure(settings -> held);
    }
  }
}
