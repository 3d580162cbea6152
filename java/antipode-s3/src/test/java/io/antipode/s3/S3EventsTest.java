package io.antipode.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

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
}
