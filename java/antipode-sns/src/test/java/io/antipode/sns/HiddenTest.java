package io.antipode.sns;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.lineage.Incomplete;
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
            .messageId("m")
            .receiptHandle("r")
            .messageAttributes(Map.of("antipode", X, "mine", X))
            .md5OfMessageAttributes(checksum)
            .build();
    return Hidden.shown(ReceiveMessageResponse.builder().messages(message).build())
        .messages()
        .get(0);
  }

  /** However it was made: all of them have the id of the message. */
  @Test
  void aCopyOfAMessageHasWhatWasHidden() {
    Hidden hidden = new Hidden();
    hidden.note(received("labelled", X));
    hidden.note(received("plain", null));
    Message copy = Message.builder().messageId("labelled").body("b").build();
    assertThat(hidden.textOf(copy)).isEqualTo("x");
    assertThat(hidden.textOf(Message.builder().messageId("plain").body("b").build())).isNull();
  }

  /** Another process hid the attribute, or a client that did not ask for it: never nothing. */
  @Test
  void oneThatNobodyHereReceivedCannotBeRead() {
    Message elsewhere = Message.builder().messageId("elsewhere").body("b").build();
    assertThat(new Hidden().textOf(elsewhere)).isEmpty();
    assertThat(Received.lineage("", "news").incomplete())
        .containsExactly(new Incomplete("news", "unreadable"));
    Message wrapped = elsewhere.toBuilder().body("{\"Type\": \"Notification\"}").build();
    assertThat(new Hidden().textOf(wrapped)).isNull();
  }

  private static ReceiveMessageResponse received(String id, MessageAttributeValue label) {
    Map<String, MessageAttributeValue> all = label == null ? Map.of() : Map.of("antipode", label);
    Message message = Message.builder().messageId(id).body("b").messageAttributes(all).build();
    return ReceiveMessageResponse.builder().messages(message).build();
  }

  /** The SDK compares it after us: attributes that came damaged must not look whole. */
  @Test
  void aChecksumThatIsWrongStaysWrong() {
    assertThat(shown("wrong").messageAttributes()).containsOnlyKeys("mine");
    assertThat(shown("wrong").md5OfMessageAttributes()).isEqualTo("wrong");
    assertThat(shown(null).md5OfMessageAttributes()).isNull();
  }
}
