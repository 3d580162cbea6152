package io.antipode;

/** A setup that cannot work: a setting, a missing scope, two shims under one name. */
public final class ConfigurationException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** Makes the error; the message says what to do. */
  public ConfigurationException(String message) {
    super("configuration", message);
  }
}
