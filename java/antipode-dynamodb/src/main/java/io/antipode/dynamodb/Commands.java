package io.antipode.dynamodb;

import io.antipode.aws.Kind;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Which operations of the API read, write, or do neither. */
final class Commands {
  private static final Set<String> WRITES =
      words("BatchWriteItem DeleteItem PutItem TransactWriteItems UpdateItem");

  private static final Set<String> READS =
      words("BatchGetItem GetItem Query Scan TransactGetItems");

  private static final Set<String> NEUTRAL =
      words(
          """
          CreateBackup CreateGlobalTable CreateTable DeleteBackup DeleteResourcePolicy DescribeBackup
          DescribeContinuousBackups DescribeContributorInsights DescribeEndpoints DescribeExport
          DescribeGlobalTable DescribeGlobalTableSettings DescribeImport
          DescribeKinesisStreamingDestination DescribeLimits DescribeTable
          DescribeTableReplicaAutoScaling DescribeTimeToLive DisableKinesisStreamingDestination
          EnableKinesisStreamingDestination ExportTableToPointInTime GetResourcePolicy ListBackups
          ListContributorInsights ListExports ListGlobalTables ListImports ListTables
          ListTagsOfResource PutResourcePolicy TagResource UntagResource UpdateContinuousBackups
          UpdateContributorInsights UpdateGlobalTable UpdateGlobalTableSettings
          UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive
          """);

  /** Those of PartiQL: their statements decide. */
  private static final Set<String> STATEMENTS =
      words("BatchExecuteStatement ExecuteStatement ExecuteTransaction");

  private static final Pattern SELECT =
      Pattern.compile("\\s*(SELECT|EXISTS)\\b", Pattern.CASE_INSENSITIVE);

  private Commands() {}

  private static Set<String> words(String text) {
    return new HashSet<>(Set.of(text.strip().split("\\s+")));
  }

  /**
   * Returns what an operation does.
   *
   * @param statements of PartiQL; empty for an operation that has none
   */
  static Kind kind(String operation, Collection<? extends @Nullable String> statements) {
    if (STATEMENTS.contains(operation)) {
      boolean isRead = !statements.isEmpty() && statements.stream().allMatch(Commands::isRead);
      return isRead ? Kind.READ : Kind.UNKNOWN;
    }
    if (WRITES.contains(operation)) {
      return Kind.WRITE;
    }
    if (READS.contains(operation)) {
      return Kind.READ;
    }
    return NEUTRAL.contains(operation) ? Kind.NEITHER : Kind.UNKNOWN;
  }

  /** Returns whether a statement of PartiQL only reads. */
  static boolean isRead(@Nullable String statement) {
    return statement != null && SELECT.matcher(statement).lookingAt();
  }
}
