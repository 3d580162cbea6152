package io.antipode.dryrun;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Pattern;

/** Names of findings, the same in reports of all languages. */
public final class FindingId {
  private static final int DIGITS = 8;
  private static final Pattern PACKAGES =
      Pattern.compile("^.*[/\\\\](?:site|dist)-packages[/\\\\]", Pattern.DOTALL);

  private FindingId() {}

  /**
   * Returns the name of a finding.
   *
   * @param parts {@code unguarded} or {@code lint}, and what the specification names after it
   */
  public static String of(List<String> parts) {
    StringBuilder text = new StringBuilder();
    parts.forEach(part -> text.append(PACKAGES.matcher(part).replaceFirst("")).append('\n'));
    return parts.get(0).substring(0, 1) + digest(text.toString()).substring(0, DIGITS);
  }

  private static String digest(String text) {
    try {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException error) { // Every Java has it.
      throw new IllegalStateException(error);
    }
  }
}
