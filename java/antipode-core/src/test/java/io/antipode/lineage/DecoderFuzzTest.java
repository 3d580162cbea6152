package io.antipode.lineage;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.propagation.AntipodePropagator;
import io.antipode.request.Scope;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Texts of the vectors, changed at random: each is a lineage, whose text is stable, or is refused
 * with a code, soon. {@link Budget} says how many.
 */
@Tag("random")
class DecoderFuzzTest {
  private static final Set<String> CODES =
      Set.of(
          "lineage_too_long",
          "lineage_alphabet",
          "lineage_header",
          "lineage_too_many",
          "lineage_item");

  /** A text has at most 65,536 characters: a second is a thousand times what one takes. */
  private static final Duration SOON = Duration.ofSeconds(1);

  private static final String ALPHABET = "~~~..--__0159azAZkKuUrRipozh%,;= é\0";
  private static final Pattern TEXT = Pattern.compile("\"text\": \"([^\"\\\\]*)\"");

  private static final TextMapGetter<Map<String, String>> HEADERS =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, String> carrier) {
          return carrier.keySet();
        }

        @Override
        public String get(Map<String, String> carrier, String name) {
          return carrier == null ? null : carrier.get(name);
        }
      };

  private final Random random = new Random(Budget.SEED);

  private static List<String> corpus() throws IOException {
    List<String> texts = new ArrayList<>(List.of("", "1", "2~x"));
    Path folder = Path.of(System.getProperty("antipode.conformance"));
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(each -> each.toString().endsWith(".json")).sorted().toList()) {
        Matcher found = TEXT.matcher(Files.readString(file));
        while (found.find()) {
          texts.add(found.group(1));
        }
      }
    }
    return texts;
  }

  private String changed(List<String> corpus) {
    StringBuilder text = new StringBuilder(any(corpus));
    for (int times = random.nextInt(4); times > 0; times--) {
      int at = random.nextInt(text.length() + 1);
      int end = Math.min(text.length(), at + random.nextInt(4));
      switch (random.nextInt(6)) {
        case 0 -> text.delete(at, end);
        case 1 -> text.insert(at, ALPHABET.charAt(random.nextInt(ALPHABET.length())));
        case 2 -> text.insert(at, text.substring(at, end));
        case 3 -> text.setLength(at);
        case 4 -> text.append('~').append(any(corpus).replaceFirst("^[^~]*~?", ""));
        default -> grow(text, at);
      }
    }
    return text.toString();
  }

  private String any(List<String> texts) {
    return texts.get(random.nextInt(texts.size()));
  }

  /** Seldom as long as a text may be, and longer. */
  private void grow(StringBuilder text, int at) {
    int most = random.nextInt(50) == 0 ? 70_000 : 300;
    text.insert(at, (random.nextBoolean() ? "9" : "~ka.1.k").repeat(random.nextInt(most)));
    text.setLength(Math.min(text.length(), most));
  }

  private static void check(String text) {
    long began = System.nanoTime();
    try {
      Lineage lineage = Lineage.deserialize(text);
      String canonical = lineage.serialize();
      Lineage again = Lineage.deserialize(canonical);
      assertThat(again).isEqualTo(lineage).hasSameHashCodeAs(lineage);
      assertThat(again.serialize()).isEqualTo(canonical);
      assertThat(lineage.merge(again)).isEqualTo(lineage);
      String bounded = lineage.serialize(Bound.ofBytes(1_024));
      assertThat(bounded.length() + "antipode=".length()).isLessThanOrEqualTo(1_024);
      assertThat(Lineage.deserialize(bounded).serialize()).isEqualTo(bounded);
    } catch (LineageDecodeException refused) {
      assertThat(CODES).contains(refused.code());
      assertThat(refused.offset()).isBetween(0, text.length());
    }
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(SOON);
  }

  /** What comes in a header never throws, and is absent, valid, or marked as unreadable. */
  private static void extract(String text) {
    Map<String, String> headers = Map.of("baggage", "tenant=acme,antipode=" + text + ",x=1");
    Context context = AntipodePropagator.baggage().extract(Context.root(), headers, HEADERS);
    Scope scope = Scope.fromContextOrNull(context);
    assertThat(scope).isNotNull();
    assertThat(Lineage.deserialize(scope.text())).isNotNull();
  }

  @Test
  void aTextIsALineageOrIsRefusedWithACode() throws IOException {
    List<String> corpus = corpus();
    assertThat(corpus).hasSizeGreaterThan(100);
    Budget budget = new Budget();
    long tried = 0;
    do {
      String text = changed(corpus);
      try {
        check(text);
        extract(text);
      } catch (RuntimeException | Error found) {
        String shown = text.length() > 2_000 ? text.length() + " characters" : text;
        throw new AssertionError("seed " + Budget.SEED + ", text " + tried + ": " + shown, found);
      }
      tried++;
    } while (budget.isLeft());
    System.out.println("texts tried: " + tried + ", seed " + Budget.SEED);
  }

  @Test
  void bytesThatAreNoTextAreRefused() {
    byte[] bytes = new byte[64];
    for (int times = 0; times < 1_000; times++) {
      random.nextBytes(bytes);
      check(new String(bytes, StandardCharsets.ISO_8859_1));
      check(new String(bytes, StandardCharsets.UTF_16));
    }
  }
}
