package io.antipode.activemq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.lineage.Incomplete;
import io.antipode.request.ScopeBlock;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.command.ActiveMQTopic;
import org.junit.jupiter.api.Test;

/** Sends with a listener, which ActiveMQ's client refuses so far: on one that knows them. */
class CompletionTest {
  private final List<Message> sent = new ArrayList<>();
  private final List<CompletionListener> listeners = new ArrayList<>();
  private final List<Object> told = new ArrayList<>();
  private final ActiveMQTextMessage message = new ActiveMQTextMessage();
  private final CompletionListener application =
      new CompletionListener() {
        @Override
        public void onCompletion(Message completed) {
          told.add(completed);
        }

        @Override
        public void onException(Message failed, Exception error) {
          told.add(error);
        }
      };

  private static <T> T fake(Class<T> type, InvocationHandler handler) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }

  private MessageProducer producer() throws JMSException {
    MessageProducer real =
        fake(
            MessageProducer.class,
            (face, method, arguments) -> {
              if (method.getName().equals("send")) {
                sent.add((Message) arguments[0]);
                listeners.add((CompletionListener) arguments[1]);
                return null;
              }
              return method.getName().equals("getDestination") ? new ActiveMQTopic("news") : 2;
            });
    Session session =
        fake(
            Session.class,
            (face, method, arguments) ->
                method.getName().equals("getTransacted") ? (Object) false : real);
    Connection connection = fake(Connection.class, (face, method, arguments) -> session);
    return ActiveMqInstrumentation.of("news")
        .instrument(connection)
        .createSession()
        .createProducer(null);
  }

  @Test
  void aMessageEntersBeforeItsListenerIsCalledWhichSeesTheApplicationsOwn() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      producer().send(message, application);
      assertThat(Antipode.current().isEmpty()).isTrue();
      sent.get(0).setJMSMessageID("ID:1");
      listeners.get(0).onCompletion(sent.get(0));
      assertThat(Antipode.current().writes()).hasSize(1);
      assertThat(told).singleElement().isSameAs(message);
      assertThat(message.getJMSMessageID()).isEqualTo("ID:1");
      assertThat(message.propertyExists("antipode-write")).isFalse();
    }
  }

  @Test
  void oneThatMayHaveFailedIsInDoubt() throws Exception {
    JMSException error = new JMSException("the connection was lost");
    try (ScopeBlock request = Antipode.scope()) {
      producer().send(message, application);
      listeners.get(0).onException(sent.get(0), error);
      assertThat(Antipode.current().incomplete())
          .containsExactly(new Incomplete("news", "in_doubt"));
      assertThat(told).containsExactly(error);
    }
  }

  /** What the client does not know is its own error, and nothing was sent. */
  @Test
  void aClientWithoutThemRefusesAsWithoutTheLibrary() throws Exception {
    try (Broker broker = new Broker();
        Connection connection =
            ActiveMqInstrumentation.of("news").instrument(broker.factory()).createConnection();
        Session session = connection.createSession();
        ScopeBlock request = Antipode.scope()) {
      MessageProducer producer = session.createProducer(session.createTopic("news"));
      assertThatThrownBy(() -> producer.send(message, application))
          .isInstanceOf(UnsupportedOperationException.class);
      assertThat(Antipode.current().isEmpty()).isTrue();
    }
  }
}
