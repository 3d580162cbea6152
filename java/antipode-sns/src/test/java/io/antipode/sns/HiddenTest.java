package io.antipode.sns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageResponse;

/** What an application is shown of what it received. */
class HiddenTest {
  private static final MessageAttributeValue X =
      MessageAttributeValue.builder().dataType("String").stringValue("x").build();

  private static Message shown(String checksum) {
    Message message =
        Message.builder()
            .receiptHandle("r")
            .messageAttributes(Map.of("antipode", X, "mine", X))
            .md5OfMessageAttributes(checksum)
            .build();
    return new Hidden()
        .shown(ReceiveMessageResponse.builder().messages(message).build())
        .messages()
        .get(0);
  }

  /** The SDK compares it after us: attributes that came damaged must not look whole. */
  @Test
  void aChecksumThatIsWrongStaysWrong() {
    assertThat(shown("wrong").messageAttributes()).containsOnlyKeys("mine");
    assertThat(shown("wrong").md5OfMessageAttributes()).isEqualTo("wrong");
    assertThat(shown(null).md5OfMessageAttributes()).isNull();
  }
}
