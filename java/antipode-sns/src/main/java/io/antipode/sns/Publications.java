package io.antipode.sns;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.sns.model.PublishBatchRequest;
import software.amazon.awssdk.services.sns.model.PublishBatchRequestEntry;
import software.amazon.awssdk.services.sns.model.PublishRequest;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequest;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageRequest;

/** What is published, with what its request depends on. */
final class Publications {
  private final String datastore;

  Publications(String datastore) {
    this.datastore = datastore;
  }

  /** Returns a request each of whose messages has the current lineage, if it has room. */
  SdkRequest labelled(SdkRequest request) {
    try {
      return request(request);
    } catch (RuntimeException error) { // The message goes as the application gave it.
      leftOut("what was given was not understood: " + error);
      return request;
    }
  }

  private SdkRequest request(SdkRequest request) {
    if (request instanceof PublishRequest one) {
      return batch(
              Label.SNS,
              List.of(one),
              PublishRequest::message,
              PublishRequest::messageAttributes,
              (each, all) -> each.toBuilder().messageAttributes(all).build())
          .get(0);
    }
    if (request instanceof SendMessageRequest one) {
      return batch(
              Label.SQS,
              List.of(one),
              SendMessageRequest::messageBody,
              SendMessageRequest::messageAttributes,
              (each, all) -> each.toBuilder().messageAttributes(all).build())
          .get(0);
    }
    if (request instanceof PublishBatchRequest several) {
      return several.toBuilder()
          .publishBatchRequestEntries(
              batch(
                  Label.SNS,
                  several.publishBatchRequestEntries(),
                  PublishBatchRequestEntry::message,
                  PublishBatchRequestEntry::messageAttributes,
                  (each, all) -> each.toBuilder().messageAttributes(all).build()))
          .build();
    }
    if (request instanceof SendMessageBatchRequest several) {
      return several.toBuilder()
          .entries(
              batch(
                  Label.SQS,
                  several.entries(),
                  SendMessageBatchRequestEntry::messageBody,
                  SendMessageBatchRequestEntry::messageAttributes,
                  (each, all) -> each.toBuilder().messageAttributes(all).build()))
          .build();
    }
    return request;
  }

  /** Returns messages of one request with their labels. */
  private <M, V> List<M> batch(
      Label<V> label,
      List<M> messages,
      Function<M, String> body,
      Function<M, Map<String, V>> attributes,
      BiFunction<M, Map<String, V>, M> with) {
    Recording.recordStored(null);
    int room = Label.MOST_BYTES;
    for (M each : messages) {
      room -= label.size(body.apply(each), attributes.apply(each));
    }
    List<M> labelled = new ArrayList<>();
    for (M each : messages) {
      Map<String, V> given = attributes.apply(each);
      // One that was copied from another message is merged.
      Lineage lineage = Antipode.current().merge(Received.lineage(label.in(given), datastore));
      @Nullable Map<String, V> all = label.on(given, LineageText.message(lineage), room);
      if (all == null) {
        leftOut("a message has no room for the attribute '" + Label.NAME + "'");
        labelled.add(each);
      } else {
        room -= label.size(null, all) - label.size(null, given);
        labelled.add(with.apply(each, all));
      }
    }
    return labelled;
  }

  /** Notes that a message goes without its label: its consumer learns no causes. */
  private void leftOut(String why) {
    Counts.count("baggage_dropped", datastore);
    Counts.logOnce(
        "baggage_dropped",
        datastore,
        why,
        () -> "a message of '" + datastore + "' goes without what it depends on: " + why);
    Recording.markIncomplete(datastore, "size");
  }
}
