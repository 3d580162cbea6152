package io.antipode.sns;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Time;
import io.antipode.s3.S3Shim;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageResponse;

/** Events of S3 that come as messages, or to Lambda. */
class BucketEventsTest {
  private static final String RECORD =
      """
      {"eventSource": "aws:s3", "awsRegion": "eu-west-1", "eventName": "ObjectCreated:Put",
       "s3": {"bucket": {"name": "notes"}, "object": {"key": "a+b", "versionId": "v1"}}}""";
  private static final String EVENT = "{\"Records\": [" + RECORD + "]}";
  private static final WriteId OBJECT = WriteId.ofOpaque("media", "notes/a b@eu-west-1", "v1");
  private static final WriteId LABEL = WriteId.of("posts", "log", 7).writtenAt(Time.hour());

  private SnsShim jobs = SnsShim.builder("jobs").events("media").register();

  @AfterEach
  void close() {
    jobs.close();
  }

  private static Message message(String body) {
    return Message.builder().messageId(UUID.randomUUID().toString()).body(body).build();
  }

  private static String wrapped(String text) {
    return "{\"Type\": \"Notification\", \"Message\": \""
        + text.replace("\n", " ").replace("\"", "\\\"")
        + "\"}";
  }

  private static Lineage in(ScopeBlock opened) {
    try (ScopeBlock handling = opened) {
      return Antipode.current();
    }
  }

  private Lineage of(String body) {
    return in(jobs.message(message(body)));
  }

  private static void isObject(Lineage found) {
    assertThat(found).isEqualTo(Lineage.of(OBJECT.writtenAt(Time.hour())));
  }

  /** Raw or in an envelope: its scope depends on the version, and is not unknown. */
  @Test
  void aMessageThatIsAnEventDependsOnItsObject() {
    isObject(of(EVENT));
    isObject(of(wrapped(EVENT)));
    isObject(of(RECORD));
    isObject(in(jobs.messages(List.of(message(EVENT), message(wrapped(EVENT))))));
    assertThat(of("{\"Service\": \"Amazon S3\", \"Event\": \"s3:TestEvent\"}"))
        .isEqualTo(Lineage.empty());
  }

  /** Direct, by EventBridge, or in a message of a topic or a queue. */
  @Test
  void anEventOfLambdaDependsOnItsObject() {
    Map<String, ?> object = Map.of("key", "a+b", "versionId", "v1");
    Map<String, ?> direct =
        Map.of(
            "eventSource", "aws:s3",
            "awsRegion", "eu-west-1",
            "eventName", "ObjectCreated:Put",
            "s3", Map.of("bucket", Map.of("name", "notes"), "object", object));
    isObject(in(jobs.event(Map.of("Records", List.of(direct)))));
    isObject(in(jobs.event(Map.of("Records", List.of(Map.of("body", EVENT))))));
    isObject(in(jobs.event(Map.of("Records", List.of(Map.of("body", wrapped(EVENT)))))));
    Map<String, ?> published = Map.of("Sns", Map.of("Message", EVENT));
    isObject(in(jobs.event(Map.of("Records", List.of(published, direct)))));
    Map<String, ?> made = Map.of("key", "a b", "version-id", "v1");
    isObject(
        in(
            jobs.event(
                Map.of(
                    "source", "aws.s3",
                    "region", "eu-west-1",
                    "detail-type", "Object Created",
                    "detail", Map.of("bucket", Map.of("name", "notes"), "object", made)))));
  }

  /** Somebody sent it on, with what that depends on: shown, hidden, or in a record of Lambda. */
  @Test
  void aLabelGoesBeforeTheEvent() {
    String text = Lineage.of(LABEL).serialize();
    MessageAttributeValue label =
        MessageAttributeValue.builder().dataType("String").stringValue(text).build();
    Message shown = message(EVENT).toBuilder().messageAttributes(Map.of("antipode", label)).build();
    assertThat(in(jobs.message(shown)).writes()).containsExactly(LABEL);
    SnsShim.hidden().note(ReceiveMessageResponse.builder().messages(shown).build());
    Message hidden = shown.toBuilder().messageAttributes(Map.of()).build();
    assertThat(in(jobs.message(hidden)).writes()).containsExactly(LABEL);
    Map<String, ?> attributes = Map.of("antipode", Map.of("stringValue", text));
    Map<String, ?> record = Map.of("body", EVENT, "messageAttributes", attributes);
    assertThat(in(jobs.event(Map.of("Records", List.of(record)))).writes()).containsExactly(LABEL);
  }

  private static S3Shim bucket(String datastore) {
    return S3Shim.builder(
            datastore,
            S3Client.builder()
                .region(Region.EU_WEST_1)
                .credentialsProvider(AnonymousCredentialsProvider.create()))
        .register();
  }

  /** The one datastore of S3 that is here; of none or of several nobody says which. */
  @Test
  void withoutANameItIsTheOneDatastoreOfS3() {
    jobs.close();
    jobs = SnsShim.builder("jobs").register();
    assertThat(of(EVENT)).isEqualTo(Lineage.empty());
    try (S3Shim media = bucket("media");
        S3Shim again = bucket("media")) {
      isObject(of(EVENT));
      try (S3Shim other = bucket("other")) {
        assertThat(of(EVENT).incomplete()).containsExactly(new Incomplete("jobs", "unsampled"));
        assertThat(of(EVENT).writes()).isEmpty();
      }
    }
  }

  /** It breaks no handler, and never means nothing. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"eventSource\": \"aws:s3\", \"awsRegion\": \"EU/@\", \"s3\": {\"bucket\":"
            + " {\"name\": \"notes\"}, \"object\": {\"key\": \"a\", \"versionId\": \"v1\"}}}",
        "{\"eventSource\": \"aws:s3\", \"s3\": {}}",
        "{\"source\": \"aws.s3\", \"detail\": {}}"
      })
  void aForgedEventIsUnreadable(String body) {
    assertThat(of(body).incomplete()).containsExactly(new Incomplete("jobs", "unreadable"));
    assertThat(in(jobs.event(Map.of("Records", List.of(Map.of("body", wrapped(body)))))))
        .isEqualTo(Lineage.empty().marked(new Incomplete("jobs", "unreadable")));
  }

  /** A message of others may have anything in it: it is handled as one without a label. */
  @Test
  void aMessageThatOnlyLooksLikeOneIsNone() {
    String deep = "[".repeat(100_000);
    for (String body :
        List.of(
            "of aws:s3",
            "{\"a\": \"aws:s3\"}",
            "{\"Records\": [\"aws:s3\"]}",
            "{\"Records\": \"aws:s3\"}",
            EVENT.substring(1),
            "{\"Records\": " + deep + "\"aws:s3\"",
            wrapped("{\"Records\": [] aws:s3}"))) {
      Message known = message(body);
      SnsShim.hidden().note(ReceiveMessageResponse.builder().messages(known).build());
      assertThat(in(jobs.message(known))).as(body).isEqualTo(Lineage.empty());
      assertThat(in(jobs.event(Map.of("Records", List.of(Map.of("body", body))))))
          .as(body)
          .isEqualTo(Lineage.empty());
    }
  }
}
