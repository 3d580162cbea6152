package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.lineage.WriteId;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.OperationType;
import software.amazon.awssdk.services.dynamodb.model.Record;
import software.amazon.awssdk.services.dynamodb.model.StreamRecord;

/** Lineages of records of a table's stream. */
class DynamoDbEventsTest {
  private static final String ARN = "arn:aws:dynamodb:eu-west-1:1:table/posts/stream/2026";
  private static final long STAMP = 1_790_000_000_000_000L << 12;
  private static final Map<String, AttributeValue> KEYS = Map.of("id", AttributeValue.fromS("a"));

  private static Map<String, AttributeValue> image(String stamp) {
    Map<String, AttributeValue> image = new HashMap<>(KEYS);
    image.put("_ap", AttributeValue.fromN(stamp));
    return image;
  }

  private static WriteId write(
      OperationType kind, @Nullable String newStamp, @Nullable String oldStamp) {
    StreamRecord.Builder told = StreamRecord.builder().keys(KEYS);
    if (newStamp != null) {
      told.newImage(image(newStamp));
    }
    if (oldStamp != null) {
      told.oldImage(image(oldStamp));
    }
    Record made =
        Record.builder().eventName(kind).awsRegion("eu-west-1").dynamodb(told.build()).build();
    return DynamoDbEvents.lineage("posts", ARN, made).writes().iterator().next();
  }

  /** As an instrumented writer's own entry. */
  @Test
  void aRecordHasTheStampOfItsOwnWrite() {
    String stamp = Long.toString(STAMP);
    WriteId write = write(OperationType.INSERT, stamp, null);
    assertThat(write.key()).isEqualTo("posts/id=a@eu-west-1");
    assertThat(write.version()).isEqualTo(STAMP);
    assertThat(write.isCovering()).isFalse();
    assertThat(write(OperationType.MODIFY, stamp, "4096").version()).isEqualTo(STAMP);
  }

  /** One that may be another's, or forged, is none: the write is waited for as of now. */
  @Test
  void whatMayBeAnothersIsWaitedForAsOfNow() {
    String stamp = Long.toString(STAMP);
    assertThat(write(OperationType.MODIFY, stamp, stamp).isCovering()).isTrue();
    assertThat(write(OperationType.MODIFY, stamp, null).isCovering()).isTrue();
    assertThat(write(OperationType.INSERT, null, null).isCovering()).isTrue();
    assertThat(write(OperationType.INSERT, "0", null).isCovering()).isTrue();
    assertThat(write(OperationType.INSERT, "-4096", null).isCovering()).isTrue();
    assertThat(write(OperationType.INSERT, Long.toString(STAMP | 1), null).isCovering()).isTrue();
    WriteId removed = write(OperationType.REMOVE, null, stamp);
    assertThat(removed.isCovering()).isTrue();
    assertThat(Stamps.isDeletion(removed.version())).isTrue();
  }

  /** Forged, or of a later release. */
  @Test
  void whatNamesNoItemIsAnError() {
    StreamRecord told = StreamRecord.builder().keys(KEYS).build();
    Record.Builder made =
        Record.builder().eventName(OperationType.INSERT).awsRegion("eu-west-1").dynamodb(told);
    Record[] forged = {
      made.build().toBuilder().awsRegion("eu/west").build(),
      made.build().toBuilder().eventName("REPLACE").build(),
      made.build().toBuilder().dynamodb(StreamRecord.builder().build()).build(),
      Record.builder().build(),
    };
    for (Record each : forged) {
      assertThatThrownBy(() -> DynamoDbEvents.lineage("posts", ARN, each))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> DynamoDbEvents.lineage("posts", "", made.build()))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
