package io.antipode.dynamodb;

import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.AttributeAction;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.AttributeValueUpdate;
import software.amazon.awssdk.services.dynamodb.model.Update;
import software.amazon.awssdk.services.dynamodb.model.UpdateItemRequest;

/** How an update comes to set the stamp, too. */
final class Updates {
  /** How our attribute is called in an application's expression. */
  private static final String NAME = "#antipode_ap";

  private static final String VALUE = ":antipode_ap";
  private static final String CLAUSE = "SET " + NAME + " = " + VALUE;

  /** The keyword, and neither part of a name nor of a placeholder. */
  private static final Pattern SET =
      Pattern.compile("(?<![#:\\w.])SET(?=\\s)", Pattern.CASE_INSENSITIVE);

  private Updates() {}

  /** Returns an expression that sets the stamp, too. */
  static String expression(@Nullable String given) {
    String expression = given == null ? "" : given;
    Matcher set = SET.matcher(expression);
    return set.find()
        ? expression.substring(0, set.start()) + CLAUSE + "," + expression.substring(set.end())
        : (CLAUSE + " " + expression).strip();
  }

  /** Returns the request with a stamp; one that the service refuses, which ours would mend, not. */
  static UpdateItemRequest stamped(UpdateItemRequest request, long stamp) {
    boolean hasNoNames =
        request.hasExpressionAttributeNames() && request.expressionAttributeNames().isEmpty();
    boolean hasNoValues =
        request.hasExpressionAttributeValues() && request.expressionAttributeValues().isEmpty();
    if (hasNoNames || hasNoValues || "".equals(request.updateExpression())) {
      return request;
    }
    boolean isLegacy =
        request.hasAttributeUpdates()
            || request.hasExpected()
            || request.conditionalOperator() != null;
    // The service refuses an expression together with a legacy parameter, such as a condition.
    if (isLegacy && request.updateExpression() == null) {
      Map<String, AttributeValueUpdate> updates = new HashMap<>(request.attributeUpdates());
      updates.put(
          Stored.STAMP,
          AttributeValueUpdate.builder()
              .action(AttributeAction.PUT)
              .value(Stored.stamp(stamp))
              .build());
      return request.toBuilder().attributeUpdates(updates).build();
    }
    return request.toBuilder()
        .updateExpression(expression(request.updateExpression()))
        .expressionAttributeNames(names(request.expressionAttributeNames()))
        .expressionAttributeValues(values(request.expressionAttributeValues(), stamp))
        .build();
  }

  /** Returns the action of a transaction with a stamp, as a request. */
  static Update stamped(Update update, long stamp) {
    boolean hasNoNames =
        update.hasExpressionAttributeNames() && update.expressionAttributeNames().isEmpty();
    boolean hasNoValues =
        update.hasExpressionAttributeValues() && update.expressionAttributeValues().isEmpty();
    if (hasNoNames || hasNoValues || "".equals(update.updateExpression())) {
      return update;
    }
    return update.toBuilder()
        .updateExpression(expression(update.updateExpression()))
        .expressionAttributeNames(names(update.expressionAttributeNames()))
        .expressionAttributeValues(values(update.expressionAttributeValues(), stamp))
        .build();
  }

  private static Map<String, String> names(Map<String, String> given) {
    Map<String, String> names = new HashMap<>(given);
    names.put(NAME, Stored.STAMP);
    return names;
  }

  private static Map<String, AttributeValue> values(Map<String, AttributeValue> given, long stamp) {
    Map<String, AttributeValue> values = new HashMap<>(given);
    values.put(VALUE, Stored.stamp(stamp));
    return values;
  }
}
