package io.antipode.agent;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.Lineage;
import io.antipode.sns.SnsDecisions;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;

/** What the shim of SNS and SQS decides without its service, in the form of the vectors. */
final class SnsVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private SnsVectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    return switch (kind) {
      case "message" -> JSON.objectNode().set("lineage", Values.json(found(given.path("message"))));
      case "label" -> label(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of sns");
    };
  }

  private static Lineage found(JsonNode message) {
    return message.has("Body")
        ? SnsDecisions.found(message(message))
        : SnsDecisions.found(
            MAPPER.convertValue(message, new TypeReference<Map<String, Object>>() {}));
  }

  private static Message message(JsonNode given) {
    Map<String, MessageAttributeValue> attributes = new HashMap<>();
    for (Map.Entry<String, JsonNode> each : given.path("MessageAttributes").properties()) {
      MessageAttributeValue.Builder value = MessageAttributeValue.builder();
      JsonNode held = each.getValue();
      if (held.has("StringValue")) {
        value.dataType("String").stringValue(held.path("StringValue").asText());
      } else {
        byte[] bytes = Base64.getDecoder().decode(held.path("BinaryValue").asText());
        value.dataType("Binary").binaryValue(SdkBytes.fromByteArray(bytes));
      }
      attributes.put(each.getKey(), value.build());
    }
    return Message.builder()
        .body(given.path("Body").asText())
        .messageAttributes(attributes)
        .build();
  }

  private static ObjectNode label(JsonNode given) {
    @Nullable Set<String> sent =
        SnsDecisions.labelled(
            Values.texts(given.path("attributes")),
            Values.text(given, "text"),
            given.path("room").asInt());
    ObjectNode value = JSON.objectNode();
    if (sent == null) {
      return value.putNull("sent");
    }
    sent.forEach(value.putArray("sent")::add);
    return value;
  }
}
