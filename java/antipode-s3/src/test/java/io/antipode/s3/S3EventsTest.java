package io.antipode.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Lineages of notifications of buckets. */
class S3EventsTest {
  private static final Lineage UNSAMPLED =
      Lineage.empty().marked(new Incomplete("posts", "unsampled"));

  private static Lineage of(String name, @Nullable String version) {
    return S3Events.lineage("posts", "eu-west-1", name, "notes", "a+b%2B", version);
  }

  /** Of an object or of a delete marker, by the key as it is. */
  @Test
  void anEventHasTheVersionThatWasMade() {
    for (String name :
        List.of(
            "ObjectCreated:Put", "s3:ObjectCreated:Copy", "ObjectRemoved:DeleteMarkerCreated")) {
      WriteId write = of(name, "v1").writes().iterator().next();
      assertThat(write.key()).isEqualTo("notes/a b+@eu-west-1");
      assertThat(write).hasToString("posts[notes/a b+@eu-west-1]=\"v1\"");
    }
  }

  /** What has no version is marked, and what changes nothing that is read is nothing. */
  @Test
  void whatHasNoVersionIsMarked() {
    assertThat(of("ObjectCreated:Put", null)).isEqualTo(UNSAMPLED);
    assertThat(of("ObjectCreated:Put", "null")).isEqualTo(UNSAMPLED);
    assertThat(of("ObjectRemoved:Delete", "v1")).isEqualTo(UNSAMPLED);
    assertThat(of("ObjectTagging:Put", "v1")).isEqualTo(UNSAMPLED);
    assertThat(of("of a later year", "v1")).isEqualTo(UNSAMPLED);
    assertThat(of("ObjectRestore:Completed", "v1")).isEqualTo(Lineage.empty());
  }

  /** Forged, or another service's. */
  @Test
  void whatNamesNoObjectIsAnError() {
    for (String[] forged :
        new String[][] {
          {"EU/@", "notes", "a"}, {"eu-west-1", "", "a"}, {"eu-west-1", "notes", ""}
        }) {
      assertThatThrownBy(
              () ->
                  S3Events.lineage(
                      "posts", forged[0], "ObjectCreated:Put", forged[1], forged[2], "v1"))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  // Parsed ones.

  private static Map<String, Object> record(String name, @Nullable Object version) {
    Map<String, Object> made = new HashMap<>(Map.of("key", "a+b%2B"));
    made.put("versionId", version);
    Map<String, Object> s3 = Map.of("bucket", Map.of("name", "notes"), "object", made);
    return Map.of("eventSource", "aws:s3", "awsRegion", "eu-west-1", "eventName", name, "s3", s3);
  }

  private static Map<String, Object> bridged(String kind, Map<String, ?> more) {
    Map<String, Object> detail = new HashMap<>(more);
    detail.put("bucket", Map.of("name", "notes"));
    detail.put("object", Map.of("key", "a+b", "version-id", "v1"));
    return Map.of("source", "aws.s3", "region", "eu-west-1", "detail-type", kind, "detail", detail);
  }

  /** Its records together, or one of them; what S3 sends as a test is nothing. */
  @Test
  void aParsedEventIsThatOfItsFields() {
    Map<String, Object> first = record("ObjectCreated:Put", "v1");
    Lineage created = of("ObjectCreated:Put", "v1");
    assertThat(S3Events.lineage("posts", first)).isEqualTo(created);
    Map<String, Object> event =
        Map.of("Records", List.of(first, record("ObjectTagging:Put", "v1")));
    assertThat(S3Events.lineage("posts", event)).isEqualTo(created.merge(UNSAMPLED));
    for (Object none : Arrays.asList(null, "", "null", 7)) {
      assertThat(S3Events.lineage("posts", record("ObjectCreated:Put", none))).isEqualTo(UNSAMPLED);
    }
    Map<String, Object> test = Map.of("Service", "Amazon S3", "Event", "s3:TestEvent");
    assertThat(S3Events.lineage("posts", test)).isEqualTo(Lineage.empty());
  }

  /** Its key is as it is, and a deletion says of which kind it was. */
  @Test
  void anEventOfEventBridgeIsOneOfS3() {
    WriteId write =
        S3Events.lineage("posts", bridged("Object Created", Map.of())).writes().iterator().next();
    assertThat(write).hasToString("posts[notes/a+b@eu-west-1]=\"v1\"");
    Map<String, String> marker = Map.of("deletion-type", "Delete Marker Created");
    assertThat(S3Events.lineage("posts", bridged("Object Deleted", marker)).writes()).hasSize(1);
    Map<String, String> gone = Map.of("deletion-type", "Permanently Deleted");
    assertThat(S3Events.lineage("posts", bridged("Object Deleted", gone))).isEqualTo(UNSAMPLED);
    assertThat(S3Events.lineage("posts", bridged("Object Tags Added", Map.of())))
        .isEqualTo(UNSAMPLED);
    assertThat(S3Events.lineage("posts", bridged("Object Restore Completed", Map.of())))
        .isEqualTo(Lineage.empty());
  }

  static List<Map<String, ?>> forged() {
    Map<String, Object> first = record("ObjectCreated:Put", "v1");
    Map<String, Object> away = new HashMap<>(first);
    away.put("awsRegion", "EU/@");
    Map<String, Object> empty = new HashMap<>(first);
    empty.put("s3", Map.of());
    Map<String, Object> cut = new HashMap<>(first);
    cut.put("s3", Map.of("bucket", Map.of("name", "notes"), "object", Map.of("key", "a%zz")));
    return List.of(
        Map.of(),
        Map.of("Records", List.of()),
        Map.of("Records", List.of(first, Map.of("eventSource", "aws:sqs"))),
        Map.of("Records", Collections.singletonList(null)),
        Map.of("eventSource", "aws:s3", "s3", "x"),
        Map.of("source", "aws.s3", "detail", "x"),
        away,
        empty,
        cut);
  }

  /** Nobody is asked. */
  @ParameterizedTest
  @MethodSource("forged")
  void aParsedEventThatNamesNoObjectIsAnError(Map<String, ?> event) {
    assertThatThrownBy(() -> S3Events.lineage("posts", event))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
