package io.antipode.telemetry;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class CounterTest {
  private static final Pattern ROW =
      Pattern.compile(
          "\\| `(antipode\\.\\w+)` \\| counter \\| `\\{(\\w+)}` \\|([^|]*)\\|([^|]*)\\|");
  private static final Pattern QUOTED = Pattern.compile("`([\\w.]+)`");

  /** The table of the reference is that of every language. */
  @Test
  void countersAreThoseOfTheReference() throws Exception {
    Path reference =
        Path.of(System.getProperty("antipode.conformance"), "../../docs/reference/telemetry.md");
    String text = Files.readString(reference);
    Map<String, Counter> listed = new TreeMap<>();
    Matcher rows = ROW.matcher(text.substring(text.indexOf("| of the counts |")));
    while (rows.find()) {
      String attribute =
          QUOTED
              .matcher(rows.group(3))
              .results()
              .map(found -> found.group(1))
              .filter(name -> !name.equals("antipode.datastore"))
              .findFirst()
              .orElse("");
      String[] counts =
          QUOTED
              .matcher(rows.group(4).split(";", 2)[0])
              .results()
              .map((MatchResult found) -> found.group(1))
              .toArray(String[]::new);
      for (String count : counts) {
        listed.put(count, new Counter(rows.group(1), rows.group(2), attribute));
      }
    }
    assertThat(listed).hasSizeGreaterThan(40);
    assertThat(new TreeMap<>(Counter.all())).isEqualTo(listed);
  }
}
