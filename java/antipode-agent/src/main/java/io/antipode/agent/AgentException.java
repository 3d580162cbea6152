package io.antipode.agent;

/** A request that makes no sense, or that this language cannot do. */
final class AgentException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String code;

  private AgentException(String code, String message) {
    super(message);
    this.code = code;
  }

  static AgentException senseless(String message) {
    return new AgentException("agent", message);
  }

  static AgentException unsupported(String operation) {
    return new AgentException("unsupported", "Java does not have " + operation + " yet");
  }

  String code() {
    return code;
  }
}
