package io.antipode.activemq;

import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Whether a send outside of a transaction returns once the broker has the message.
 *
 * @param ofPersistent of a persistent message
 * @param ofOthers of one that is not
 */
record Confirms(boolean ofPersistent, boolean ofOthers) {
  /** The client's default. */
  static final Confirms DEFAULT = new Confirms(true, false);

  /** Returns how connections of a factory do, or a connection does; else as before. */
  static Confirms of(Object origin, Confirms before) {
    if (origin instanceof ActiveMQConnectionFactory factory) {
      boolean isSync = factory.isAlwaysSyncSend() || factory.getSendTimeout() > 0;
      return new Confirms(isSync || !factory.isUseAsyncSend(), isSync);
    }
    if (origin instanceof ActiveMQConnection connection) {
      boolean isSync = connection.isAlwaysSyncSend() || connection.getSendTimeout() > 0;
      return new Confirms(isSync || !connection.isUseAsyncSend(), isSync);
    }
    return before;
  }

  boolean of(boolean isPersistent) {
    return isPersistent ? ofPersistent : ofOthers;
  }
}
