package io.antipode.activemq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.XAConnection;
import jakarta.jms.XAConnectionFactory;
import jakarta.jms.XASession;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.transaction.xa.XAResource;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.command.XATransactionId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;

/** Instrumented connections, on a broker. */
class InstrumentedSessionTest {
  private static final WriteId CAUSE = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final long LONG_MS = 20_000;

  private static Broker broker;

  private final Settings before = Settings.current();
  private final String name = "VirtualTopic." + UUID.randomUUID();
  private final BlockingQueue<Lineage> handled = new ArrayBlockingQueue<>(10);
  private ConnectionFactory factory;
  private Connection connection;
  private Session session;
  private Topic topic;
  private MessageConsumer consumer;
  private MessageProducer producer;

  @BeforeAll
  static void startBroker() throws Exception {
    broker = new Broker();
  }

  @AfterAll
  static void stopBroker() throws Exception {
    broker.close();
  }

  @BeforeEach
  void connect() throws Exception {
    factory = ActiveMqInstrumentation.of("news").instrument(broker.factory());
    connection = factory.createConnection();
    connection.start();
    session = connection.createSession();
    topic = session.createTopic(name);
    consumer = session.createConsumer(queue());
    producer = session.createProducer(topic);
  }

  @AfterEach
  void disconnect() throws Exception {
    Settings.configure(held -> before);
    connection.close();
  }

  private Queue queue() throws JMSException {
    return session.createQueue("Consumer.app." + name);
  }

  private Lineage handled() throws InterruptedException {
    return handled.poll(LONG_MS, TimeUnit.MILLISECONDS);
  }

  private TextMessage text() throws JMSException {
    return session.createTextMessage("1");
  }

  private static List<Object> names(Message message) throws JMSException {
    List<Object> names = new ArrayList<>();
    Enumeration<?> all = message.getPropertyNames();
    while (all.hasMoreElements()) {
      names.add(all.nextElement());
    }
    return names;
  }

  private static Incomplete incomplete(String reason) {
    return new Incomplete("news", reason);
  }

  @Test
  void aMessageToATopicIsInTheScopeOnceItIsSent() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(text());
      assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  @Test
  void aMessageToAQueueCarriesTheLineageAndEntersNone() throws Exception {
    MessageConsumer other = session.createConsumer(session.createQueue("plain." + name));
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      session.createProducer(null).send(session.createQueue("plain." + name), text());
      assertThat(Antipode.current().writes()).containsExactly(CAUSE);
    }
    try (ScopeBlock request = Antipode.scope()) {
      other.receive(LONG_MS);
      assertThat(Antipode.current().writes()).containsExactly(CAUSE);
    }
  }

  @Test
  void aListenerRunsInAScopeOfItsMessage() throws Exception {
    consumer.setMessageListener(message -> handled.add(Antipode.current()));
    Lineage sent;
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(text());
      sent = Antipode.current();
    }
    assertThat(handled()).isEqualTo(sent);
    assertThat(consumer.getMessageListener()).isNotInstanceOf(ScopedListener.class);
  }

  @Test
  void whatIsReceivedIsMergedIntoTheScopeThereIs() throws Exception {
    Lineage sent;
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(text());
      sent = Antipode.current();
    }
    try (ScopeBlock request = Antipode.scope()) {
      assertThat(consumer.receive(LONG_MS)).isNotNull();
      assertThat(Antipode.current()).isEqualTo(sent);
    }
  }

  @Test
  void theApplicationsMessageStaysAsItWasButForWhatSendingSets() throws Exception {
    TextMessage message = text();
    message.setStringProperty("baggage", "user=1");
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(message);
    }
    assertThat(names(message)).containsExactly("baggage");
    assertThat(message.getStringProperty("baggage")).isEqualTo("user=1");
    Message received = consumer.receive(LONG_MS);
    assertThat(message.getJMSMessageID()).isEqualTo(received.getJMSMessageID()).isNotNull();
    assertThat(message.getJMSDestination()).isEqualTo(topic);
    assertThat(message.getJMSTimestamp()).isEqualTo(received.getJMSTimestamp()).isPositive();
    assertThat(received.getStringProperty("baggage")).contains("user=1").contains("antipode=");
  }

  /** A received message can be sent on as it is, and names itself, not the first one. */
  @Test
  void aReceivedMessageIsSentOnUnderItsOwnName() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(text());
    }
    Message received = consumer.receive(LONG_MS);
    String first = received.getStringProperty("antipode-write");
    try (ScopeBlock request = Antipode.scope()) {
      producer.send(received);
    }
    Message second = consumer.receive(LONG_MS);
    assertThat(second.getStringProperty("antipode-write")).isNotNull().isNotEqualTo(first);
    session.createProducer(queue()).send(received);
    Message ofQueue = consumer.receive(LONG_MS);
    assertThat(ofQueue.propertyExists("antipode-write")).as("a queue's has no name").isFalse();
    try (ScopeBlock request = ActiveMqInstrumentation.of("news").message(second)) {
      assertThat(Antipode.current().writes()).contains(CAUSE);
    }
  }

  @Test
  void aCommitEntersWhatWasSentAndARollbackNothing() throws Exception {
    try (Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
        ScopeBlock request = Antipode.scope()) {
      MessageProducer sender = transacted.createProducer(topic);
      sender.send(text());
      assertThat(Antipode.current().isEmpty()).as("before the commit").isTrue();
      transacted.rollback();
      transacted.commit();
      assertThat(Antipode.current().isEmpty()).as("after the rollback").isTrue();
      sender.send(text());
      sender.send(text());
      transacted.commit();
      assertThat(Antipode.current().writes()).extracting(WriteId::version).containsExactly(2L);
    }
  }

  @Test
  void aCommitThatFailsLeavesInDoubt() throws Exception {
    ActiveMqInstrumentation news = ActiveMqInstrumentation.of("news");
    try (Broker failing = Broker.failingToCommit();
        Connection held = news.instrument(failing.factory()).createConnection();
        Session transacted = held.createSession(true, Session.SESSION_TRANSACTED);
        ScopeBlock request = Antipode.scope()) {
      transacted.createProducer(topic).send(text());
      assertThatThrownBy(transacted::commit).isInstanceOf(JMSException.class);
      assertThat(Antipode.current().incomplete()).containsExactly(incomplete("in_doubt"));
      assertThat(Antipode.current().writes()).isEmpty();
    }
  }

  @Test
  void whatTheClientRefusesEntersNothingAndTheNextOneDoes() throws Exception {
    MessageProducer closed = session.createProducer(topic);
    closed.close();
    try (ScopeBlock request = Antipode.scope()) {
      assertThatThrownBy(() -> closed.send(text())).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> producer.send(null)).isInstanceOf(Exception.class);
      assertThat(Antipode.current().isEmpty()).isTrue();
      producer.send(text());
      assertThat(Antipode.current().writes()).extracting(WriteId::version).containsExactly(1L);
    }
  }

  @Test
  void anUnconfirmedMessageCountsWhereReadersHaveReceipts() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      producer.send(text(), DeliveryMode.NON_PERSISTENT, 4, 0);
      assertThat(Antipode.current().isEmpty()).isTrue();
    }
    ConnectionFactory known =
        ActiveMqInstrumentation.of("news").withReceipts().instrument(broker.factory());
    try (JMSContext context = known.createContext();
        ScopeBlock request = Antipode.scope()) {
      context.createProducer().setDeliveryMode(DeliveryMode.NON_PERSISTENT).send(topic, "1");
      assertThat(Antipode.current().writes()).hasSize(1);
    }
  }

  @Test
  void aContextDoesAsAConnectionWithItsSession() throws Exception {
    try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED);
        ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      context
          .createProducer()
          .setProperty("baggage", "user=1")
          .setProperty("mine", 7)
          .send(topic, "text")
          .send(topic, new byte[] {1})
          .send(topic, Map.of("key", 1));
      assertThat(Antipode.current().writes()).hasSize(1);
      context.commit();
      assertThat(Antipode.current().writes()).hasSize(2);
    }
    for (Class<?> each :
        List.of(TextMessage.class, jakarta.jms.BytesMessage.class, jakarta.jms.MapMessage.class)) {
      Message received = consumer.receive(LONG_MS);
      assertThat(received).isInstanceOf(each);
      assertThat(received.getIntProperty("mine")).isEqualTo(7);
      assertThat(received.getStringProperty("baggage")).contains("user=1", "antipode=");
    }
  }

  @Test
  void aLineageIsCutToTheRoomThatThereIs() throws Exception {
    WriteId[] many = new WriteId[100];
    for (int each = 0; each < many.length; each++) {
      many[each] = WriteId.of("posts", "key-" + each, 5).writtenAt(100);
    }
    TextMessage message = text();
    message.setStringProperty("mine", "x".repeat(7_700));
    try (ScopeBlock request = Antipode.scope(Lineage.of(many))) {
      producer.send(message);
    }
    try (ScopeBlock request = Antipode.scope()) {
      Message received = consumer.receive(LONG_MS);
      assertThat(received.getStringProperty("baggage").length()).isLessThan(400);
      assertThat(Antipode.current().incomplete()).isNotEmpty();
    }
  }

  @Test
  void aMessageWhosePropertiesLeaveNoRoomGoesWithoutAndIsMarked() throws Exception {
    TextMessage message = text();
    message.setStringProperty("mine", "x".repeat(9_000));
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(message);
      assertThat(Antipode.current().incomplete()).containsExactly(incomplete("unsampled"));
      assertThat(Antipode.current().writes()).containsExactly(CAUSE);
    }
    Message received = consumer.receive(LONG_MS);
    assertThat(names(received)).contains("mine");
    assertThat(received.propertyExists("antipode-write")).isFalse();
    assertThat(received.propertyExists("baggage")).isFalse();
  }

  /** Where sending without a scope is an error, nothing was sent. */
  @Test
  void anErrorOutsideOfAScopeComesBeforeTheMessageIsSent() throws Exception {
    Settings.configure(held -> before.withOnUnscoped(Policy.RAISE));
    assertThatThrownBy(() -> producer.send(text())).isInstanceOf(ConfigurationException.class);
    Settings.configure(held -> before);
    producer.send(session.createTextMessage("second"));
    assertThat(((TextMessage) consumer.receive(LONG_MS)).getText()).isEqualTo("second");
  }

  @Test
  void aPoolKeepsWhatIsInstrumented() throws Exception {
    JmsPoolConnectionFactory pool = new JmsPoolConnectionFactory();
    pool.setConnectionFactory(factory);
    try (JMSContext context = pool.createContext();
        ScopeBlock request = Antipode.scope()) {
      context.createProducer().send((Destination) topic, "1");
      assertThat(Antipode.current().writes()).hasSize(1);
    } finally {
      pool.stop();
    }
  }

  @Test
  void aMessageDeliveredAgainCarriesWhatItCarried() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      producer.send(text());
    }
    consumer.close();
    try (Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer again = transacted.createConsumer(queue())) {
      assertThat(again.receive(LONG_MS)).isNotNull();
      transacted.rollback();
      try (ScopeBlock request = Antipode.scope()) {
        assertThat(again.receive(LONG_MS).getJMSRedelivered()).isTrue();
        assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
      }
      transacted.commit();
    }
  }

  @Test
  void aDurableSubscriptionGetsLaterWhatEachMessageCarried() throws Exception {
    try (Connection durable = factory.createConnection()) {
      durable.setClientID(name);
      Session offline = durable.createSession();
      offline.createDurableConsumer(topic, "mine").close();
      try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
        producer.send(text());
      }
      durable.start();
      MessageConsumer later = offline.createDurableConsumer(topic, "mine");
      try (ScopeBlock request = Antipode.scope()) {
        assertThat(later.receive(LONG_MS)).isNotNull();
        assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
      }
    }
  }

  /** A transaction manager commits, and the session does not learn of it. */
  @Test
  void whatIsSentInATransactionOfXaIsInDoubt() throws Exception {
    ConnectionFactory plain = new ActiveMQXAConnectionFactory(broker.url());
    XAConnectionFactory factory =
        (XAConnectionFactory) ActiveMqInstrumentation.of("news").withReceipts().instrument(plain);
    XATransactionId id = new XATransactionId();
    id.setFormatId(1);
    id.setGlobalTransactionId(new byte[] {1});
    id.setBranchQualifier(new byte[] {1});
    try (XAConnection held = factory.createXAConnection();
        XASession transacted = held.createXASession();
        ScopeBlock request = Antipode.scope()) {
      transacted.getXAResource().start(id, XAResource.TMNOFLAGS);
      transacted.getSession().createProducer(topic).send(text());
      transacted.getXAResource().end(id, XAResource.TMSUCCESS);
      transacted.getXAResource().rollback(id);
      assertThat(Antipode.current().incomplete()).containsExactly(incomplete("in_doubt"));
      assertThat(Antipode.current().writes()).isEmpty();
    }
  }
}
