package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One entry of {@code antipode.datastores}: what is at some addresses of one store.
 *
 * @param datastore the name that every service spells alike
 * @param places the addresses of one server or, of MongoDB, of a set
 * @param database the number, schema or virtual host; null for all that are there
 * @param readsFrom null where the entry does not say
 * @param oneServer null where the entry does not say
 * @param receipts whether readers of RabbitMQ have receipts
 */
record DatastoreRule(
    String datastore,
    Store store,
    List<Place> places,
    @Nullable String database,
    @Nullable ReadsFrom readsFrom,
    @Nullable Boolean oneServer,
    boolean receipts) {

  /** A kind of store. */
  enum Store {
    REDIS,
    MYSQL,
    POSTGRESQL,
    MONGODB,
    RABBITMQ,
    DYNAMODB,
    S3,
    SNS;

    /** Returns what may stand after the {@code ?} of its URLs. */
    List<String> options() {
      return switch (this) {
        case REDIS, MONGODB -> List.of("reads_from", "one_server", "both");
        case POSTGRESQL -> List.of("reads_from", "one_server", "both", "host");
        case MYSQL -> List.of("reads_from", "one_server", "both", "unix_socket");
        case RABBITMQ -> List.of("receipts");
        case DYNAMODB, S3 -> List.of("reads_from");
        case SNS -> List.of();
      };
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * An address as it is compared: nothing is resolved, but the names of this machine's loopback are
   * one.
   *
   * @param host a host, the path of a socket, or what stands for an address, with port 0
   */
  record Place(String host, int port) {
    private static final Set<String> LOOPBACK =
        Set.of("", "localhost", "127.0.0.1", "0:0:0:0:0:0:0:1");
    private static final Pattern IPV6 = Pattern.compile("[0-9a-f:.]*:[0-9a-f:.]*");

    static Place of(@Nullable String host, int port) {
      String name = host == null ? "" : host.toLowerCase(Locale.ROOT);
      String plain = name.endsWith(".") ? name.substring(0, name.length() - 1) : name;
      String spelled = plain.contains(":") ? spelled(plain) : plain;
      return new Place(LOOPBACK.contains(spelled) ? "localhost" : spelled, port);
    }

    /** Returns an address of IPv6 as all spellings of it are compared; a literal is no lookup. */
    private static String spelled(String address) {
      if (!IPV6.matcher(address).matches()) {
        return address;
      }
      try {
        return InetAddress.getByName(address).getHostAddress();
      } catch (UnknownHostException error) { // It only looks like one.
        return address;
      }
    }

    /** Returns what stands for the address of a service that Sentinels watch. */
    static Place ofSentinels(@Nullable String service) {
      return new Place("sentinel " + service, 0);
    }

    /** Returns what stands for the address of a service that one Sentinel watches. */
    static Place ofSentinels(@Nullable String service, Place by) {
      return new Place("sentinel " + service + " by " + by.host, by.port);
    }

    @Override
    public String toString() {
      return port == 0 ? host : host + ":" + port;
    }
  }

  boolean isAt(Store wanted, Place place) {
    return store == wanted && places.contains(place);
  }

  /** Returns an address, for people. */
  static String described(Store store, List<Place> places, @Nullable String database) {
    String where = places.isEmpty() ? "an unknown address" : places.get(0).toString();
    return store + " at " + where + (database == null || database.isEmpty() ? "" : "/" + database);
  }
}
