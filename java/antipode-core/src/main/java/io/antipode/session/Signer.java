package io.antipode.session;

import org.jspecify.annotations.Nullable;

/** Signs the content of a cookie, or of a token, with one key, and knows what several signed. */
interface Signer {
  /** Returns a content with its signature. */
  String sign(String content);

  /** Returns the content of a value; null where no key has signed it. */
  @Nullable String unsign(String value);
}
