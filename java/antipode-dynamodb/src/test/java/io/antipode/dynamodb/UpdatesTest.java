package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.services.dynamodb.model.Update;
import software.amazon.awssdk.services.dynamodb.model.UpdateItemRequest;

/** How updates come to set a stamp. */
class UpdatesTest {
  /** With ours an empty expression would be none, and the update would write. */
  @Test
  void whatTheServiceRefusesGetsNoStamp() {
    UpdateItemRequest empty = UpdateItemRequest.builder().updateExpression("").build();
    assertThat(Updates.stamped(empty, 7)).isEqualTo(empty);
    UpdateItemRequest values =
        UpdateItemRequest.builder()
            .updateExpression("REMOVE a")
            .expressionAttributeValues(Map.of())
            .build();
    assertThat(Updates.stamped(values, 7)).isEqualTo(values);
    Update names =
        Update.builder().updateExpression("REMOVE a").expressionAttributeNames(Map.of()).build();
    assertThat(Updates.stamped(names, 7)).isEqualTo(names);
  }

  /** Without an expression an update writes its key alone, and ours with it. */
  @Test
  void anUpdateOfNothingGetsOne() {
    UpdateItemRequest none = UpdateItemRequest.builder().build();
    assertThat(Updates.stamped(none, 7).updateExpression())
        .isEqualTo("SET #antipode_ap = :antipode_ap");
  }
}
