package io.antipode.aws;

import io.antipode.barrier.UnreachableException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.exception.ApiCallAttemptTimeoutException;
import software.amazon.awssdk.core.exception.ApiCallTimeoutException;
import software.amazon.awssdk.core.exception.SdkClientException;

/** What the SDK's errors say. */
public final class Errors {
  /** A refusal that says that the same transaction may be under way. */
  private static final String UNDER_WAY = "TransactionInProgressException";

  private static final int SERVER_ERROR = 500;

  /** Refusals after which another poll may not fail. */
  private static final Set<String> PASSING =
      Set.of(
          "InternalServerError",
          "LimitExceededException",
          "ProvisionedThroughputExceededException",
          "ReplicatedWriteConflictException",
          "RequestLimitExceeded",
          "RequestTimeout",
          "ServiceUnavailable",
          "ServiceUnavailableException",
          "SlowDown",
          "Throttling",
          "ThrottlingException",
          UNDER_WAY);

  private Errors() {}

  /** Returns whether an error proves that the attempt which it ended wrote nothing. */
  public static boolean isUndone(Throwable error) {
    if (error instanceof AwsServiceException refused) {
      return isUndone(refused.statusCode(), false) && !UNDER_WAY.equals(code(refused));
    }
    // Its request did not leave.
    return has(error, ConnectException.class) || has(error, UnknownHostException.class);
  }

  /** Returns whether a status proves that its attempt wrote nothing. */
  static boolean isUndone(int status, boolean isTransaction) {
    // A transaction that may be under way is refused with 400 as well.
    return status >= 300 && status < SERVER_ERROR && !isTransaction;
  }

  /**
   * Returns an error that polling again does not change.
   *
   * @throws UnreachableException if it may pass
   */
  public static RuntimeException lasting(RuntimeException error) {
    if (isPassing(error)) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
    return error;
  }

  private static boolean isPassing(RuntimeException error) {
    if (error instanceof AwsServiceException refused) {
      return refused.statusCode() >= SERVER_ERROR || PASSING.contains(code(refused));
    }
    return error instanceof SdkClientException
        && (error instanceof ApiCallTimeoutException
            || error instanceof ApiCallAttemptTimeoutException
            || error instanceof AbortedException
            || has(error, IOException.class));
  }

  /** Returns the code of a refusal; empty where it has none. */
  public static String code(AwsServiceException refused) {
    return refused.awsErrorDetails() == null || refused.awsErrorDetails().errorCode() == null
        ? ""
        : refused.awsErrorDetails().errorCode();
  }

  private static boolean has(Throwable error, Class<? extends Throwable> cause) {
    for (@Nullable Throwable each = error; each != null; each = each.getCause()) {
      if (cause.isInstance(each)) {
        return true;
      }
    }
    return false;
  }
}
