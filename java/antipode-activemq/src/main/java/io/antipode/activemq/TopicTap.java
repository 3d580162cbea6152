package io.antipode.activemq;

import io.antipode.messages.Heard;
import io.antipode.messages.Ledger;
import io.antipode.messages.ReconnectingTap;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.util.UUID;
import java.util.function.Consumer;

/** A subscription that shows what reached a topic at this region's broker. */
final class TopicTap extends ReconnectingTap {
  private final String topic;
  private final Ledger ledger;
  private final String datastore;
  private final Link link;

  TopicTap(ConnectionFactory broker, String topic, Ledger ledger, String datastore) {
    super(ledger, datastore);
    this.topic = topic;
    this.ledger = ledger;
    this.datastore = datastore;
    this.link = new Link(broker, Session.AUTO_ACKNOWLEDGE);
  }

  @Override
  protected String listen(Consumer<String> lost) throws JMSException {
    Session session = link.open(lost);
    session
        .createConsumer(session.createTopic(topic))
        .setMessageListener(
            message -> Heard.routed(ledger, MessageProperties.of(message), datastore));
    ledger.listening();
    return UUID.randomUUID().toString();
  }

  @Override
  public String unseen() {
    return "it has not reached the topic '" + topic + "' here: what went elsewhere is not heard";
  }

  @Override
  protected void disconnect() {
    link.close();
  }

  @Override
  protected String describe(Exception error) {
    return Link.describe(error);
  }
}
