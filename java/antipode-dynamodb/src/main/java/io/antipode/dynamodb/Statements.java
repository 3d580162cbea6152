package io.antipode.dynamodb;

import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionRequest;
import software.amazon.awssdk.services.dynamodb.model.ParameterizedStatement;

/** Requests of PartiQL, as the statements that they make. */
final class Statements {
  /**
   * One statement of a request.
   *
   * @param parameters the values of its placeholders
   */
  record Given(@Nullable String text, List<AttributeValue> parameters) {
    private static Given of(ExecuteStatementRequest one) {
      return new Given(one.statement(), one.parameters());
    }

    private static Given of(BatchStatementRequest one) {
      return new Given(one.statement(), one.parameters());
    }

    private static Given of(ParameterizedStatement one) {
      return new Given(one.statement(), one.parameters());
    }

    /** Returns what it writes; null where it is not understood, or reads. */
    @Nullable Statement parsed() {
      return Statement.parse(text, parameters);
    }
  }

  private Statements() {}

  /** Returns the statements of a request; none where it is of another kind. */
  static List<Given> of(SdkRequest request) {
    if (request instanceof ExecuteStatementRequest one) {
      return List.of(Given.of(one));
    }
    Stream<Given> several =
        request instanceof BatchExecuteStatementRequest batch
            ? batch.statements().stream().map(Given::of)
            : request instanceof ExecuteTransactionRequest transaction
                ? transaction.transactStatements().stream().map(Given::of)
                : Stream.empty();
    return several.toList();
  }

  /** Returns a request with other texts for its statements. */
  static SdkRequest changed(SdkRequest request, Function<Given, @Nullable String> text) {
    if (request instanceof ExecuteStatementRequest one) {
      return one.toBuilder().statement(text.apply(Given.of(one))).build();
    }
    if (request instanceof BatchExecuteStatementRequest batch) {
      return batch.toBuilder()
          .statements(
              batch.statements().stream()
                  .map(each -> each.toBuilder().statement(text.apply(Given.of(each))).build())
                  .toList())
          .build();
    }
    ExecuteTransactionRequest transaction = (ExecuteTransactionRequest) request;
    return transaction.toBuilder()
        .transactStatements(
            transaction.transactStatements().stream()
                .map(each -> each.toBuilder().statement(text.apply(Given.of(each))).build())
                .toList())
        .build();
  }
}
