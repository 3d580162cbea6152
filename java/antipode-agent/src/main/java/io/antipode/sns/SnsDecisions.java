package io.antipode.sns;

import io.antipode.lineage.Lineage;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;

/** What the shim of SNS and SQS decides without a service: next to what it is made of. */
public final class SnsDecisions {
  private static final MessageAttributeValue SOME =
      MessageAttributeValue.builder().dataType("String").stringValue("x").build();

  private SnsDecisions() {}

  /** Returns what the consumer of a message depends on. */
  public static Lineage found(Message message) {
    return Received.lineage(Received.textOf(message), "posts");
  }

  /** Returns what the handler of a record of an event depends on. */
  public static Lineage found(Map<String, ?> each) {
    return Received.lineage(Received.textOf(each), "posts");
  }

  /**
   * Returns the names of the attributes with which a message is sent; null without room for ours.
   *
   * @param names of those that it has
   * @param room bytes that ours may have
   */
  public static @Nullable Set<String> labelled(List<String> names, String text, int room) {
    Map<String, MessageAttributeValue> given = new HashMap<>();
    names.forEach(each -> given.put(each, SOME));
    Map<String, MessageAttributeValue> all = Label.SQS.on(given, text, room);
    return all == null ? null : new TreeSet<>(all.keySet());
  }
}
