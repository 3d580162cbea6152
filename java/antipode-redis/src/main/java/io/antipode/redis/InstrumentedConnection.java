package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisSocketFactory;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A connection of Jedis. Every client, pipeline and transaction of Jedis sends by one method of it
 * and reads replies by another one: those are overridden.
 */
final class InstrumentedConnection extends Connection {
  /** A reply, which is an error or not. */
  record Answer(@Nullable Object value, @Nullable JedisDataException error) {
    Object handedOver() {
      if (error != null) {
        throw error;
      }
      return nullable(value);
    }

    @SuppressWarnings("NullAway") // Jedis says null for a value that is not there.
    private static Object nullable(@Nullable Object value) {
      return value;
    }

    @Nullable String text() {
      return value instanceof byte[] bytes ? Look.text(bytes) : null;
    }

    /** Returns a list of values of keys or fields; null for what is not there. */
    List<@Nullable String> texts() {
      List<@Nullable String> texts = new ArrayList<>();
      if (value instanceof List<?> found) {
        found.forEach(each -> texts.add(each instanceof byte[] bytes ? Look.text(bytes) : null));
      }
      return texts;
    }
  }

  /** Null while the connection is made: what is sent then is nobody's. */
  private @Nullable JedisTraffic traffic;

  /**
   * Connects, and asks for {@code INFO} alone: there are proxies that end the connection there, and
   * users who may not.
   */
  InstrumentedConnection(
      RedisShim shim, JedisSocketFactory sockets, JedisClientConfig config, Places places) {
    super(sockets, config);
    String process = "";
    @Nullable JedisException refusal = null;
    try {
      super.sendCommand(new CommandArguments(Command.INFO).add("server"));
      String info = new Answer(super.getOne(), null).text();
      process = info == null ? "" : Link.runId(info);
    } catch (JedisDataException error) {
      refusal = error;
    } catch (JedisConnectionException error) {
      refusal = new JedisConnectionException("the address does not pass INFO", error);
      super.disconnect();
      initializeFromClientConfig(config);
    }
    traffic = new JedisTraffic(shim, this, process, refusal, places);
  }

  @Override
  public void sendCommand(CommandArguments args) {
    if (traffic == null) {
      super.sendCommand(args);
    } else {
      traffic.send(args);
    }
  }

  @Override
  protected Object readProtocolWithCheckingBroken() {
    return traffic == null ? super.readProtocolWithCheckingBroken() : traffic.reply();
  }

  @Override
  public void connect() {
    boolean wasConnected = isConnected();
    super.connect();
    if (!wasConnected && traffic != null) {
      traffic.connected();
    }
  }

  @Override
  public void setBroken() {
    super.setBroken();
    if (traffic != null) {
      traffic.lost();
    }
  }

  /** Looks once for a floor, before a command; null where its read says why it cannot wait. */
  @Nullable Observation look(Floor floor) {
    return traffic == null ? null : traffic.lookFirst(floor);
  }

  // For what goes over it.

  void send(CommandArguments args) {
    super.sendCommand(args);
  }

  void sendAll() {
    super.flush();
  }

  Answer answer() {
    try {
      return new Answer(super.readProtocolWithCheckingBroken(), null);
    } catch (JedisDataException error) {
      return new Answer(null, error);
    } catch (JedisConnectionException error) {
      setBroken();
      throw error;
    }
  }

  /** Something that is sent and answered. */
  interface Exchange<T> {
    T run();
  }

  /** Exchanges within a time; a shorter limit of the client's own holds. */
  <T> T within(Duration most, Exchange<T> exchange) {
    int limit = getSoTimeout();
    long millis = Math.min(Math.max(most.toMillis(), 1), Integer.MAX_VALUE);
    setSoTimeout((int) (limit == 0 ? millis : Math.min(limit, millis)));
    try {
      return exchange.run();
    } finally {
      if (!isBroken()) {
        setSoTimeout(limit);
      }
    }
  }
}
