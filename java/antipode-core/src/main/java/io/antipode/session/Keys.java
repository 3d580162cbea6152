package io.antipode.session;

import io.antipode.ConfigurationException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/** Signs with HMAC and SHA-256, as itsdangerous does it for Python. Thread-safe. */
final class Keys implements Signer {
  private static final int MIN_KEY = 16;
  private static final String ALGORITHM = "HmacSHA256";

  /** With this a signature is of a session cookie, whatever else its key signs. */
  static final String COOKIE = "antipode.session";

  /** The same of a session token: nobody can make a cookie of one. */
  static final String TOKEN = "antipode.session.token";

  /** Derived of the secrets; the first signs. */
  private final List<byte[]> keys;

  /** Signs with the first of some secrets, for the use of a salt. */
  Keys(List<String> secrets, String salt) {
    List<byte[]> derived = new ArrayList<>();
    for (String secret : secrets) {
      if (secret.length() < MIN_KEY) {
        throw new ConfigurationException(
            "a key of a session is a secret of at least " + MIN_KEY + " characters");
      }
      derived.add(mac(secret.getBytes(StandardCharsets.UTF_8), salt));
    }
    keys = List.copyOf(derived);
  }

  private static byte[] mac(byte[] key, String text) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException error) { // Every Java has it.
      throw new IllegalStateException(error);
    }
  }

  @Override
  public String sign(String content) {
    byte[] signature = mac(keys.get(0), content);
    return content + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(signature);
  }

  @Override
  public @Nullable String unsign(String value) {
    int dot = value.lastIndexOf('.');
    if (dot < 0) {
      return null;
    }
    String content = value.substring(0, dot);
    byte[] signature;
    try {
      signature = Base64.getUrlDecoder().decode(value.substring(dot + 1));
    } catch (IllegalArgumentException malformed) {
      return null;
    }
    for (byte[] key : keys) {
      if (MessageDigest.isEqual(mac(key, content), signature)) {
        return content;
      }
    }
    return null;
  }
}
