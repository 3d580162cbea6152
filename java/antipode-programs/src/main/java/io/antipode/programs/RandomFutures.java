package io.antipode.programs;

import java.util.Random;

/**
 * What applications do with asynchronous clients of AWS, at random, on two regions of an emulator:
 * {@code RandomFutures dynamodb http://home http://away STEPS SEED}. Prints one line of JSON, as
 * {@link RandomJdbc} does.
 */
public final class RandomFutures {
  private RandomFutures() {}

  private static Calls calls(String store, String url, String otherUrl) {
    return switch (store) {
      case "dynamodb" -> new DynamoDbCalls(url, otherUrl);
      case "s3" -> new S3Calls(url, otherUrl);
      default -> throw new IllegalArgumentException("no client is called " + store);
    };
  }

  /** Runs the client that is named. */
  public static void main(String[] arguments) throws Exception {
    Random random = new Random(Long.parseLong(arguments[4]));
    try (Calls calls = calls(arguments[0], arguments[1], arguments[2]);
        Chains chains = new Chains(calls, random)) {
      chains.run(Integer.parseInt(arguments[3]));
      System.out.println(chains.tally().line(arguments[0]));
    }
    System.exit(0); // What a program left running does not count.
  }
}
