package io.antipode.mongodb;

import com.mongodb.MongoException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;
import org.bson.BsonDocument;

/**
 * Polls with {@code hello}, on a connection of the shim's pool. Not pinned: the server may roll
 * back under it.
 */
final class MongoEndpoint implements Endpoint {
  private final Link link;
  private final Look look;
  private final ReadsFrom readsFrom;
  private final String promises;
  private final boolean isMajority;

  /**
   * Polls through a client.
   *
   * @param promises the database of the records of promises
   */
  MongoEndpoint(Link link, Look look, ReadsFrom readsFrom, String promises, boolean isMajority) {
    this.link = link;
    this.look = look;
    this.readsFrom = readsFrom;
    this.promises = promises;
    this.isMajority = isMajority;
  }

  private ServerState hello(Link asked) {
    ServerState state = asked.hello();
    if (readsFrom == ReadsFrom.PRIMARY && !state.isPrimary()) {
      throw new UnreachableException("the server is not primary any more");
    }
    return state;
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) {
    Link asked = link.allWithin(timeout);
    try {
      return look.at(hello(asked), writes, asked).build();
    } catch (MongoException error) {
      throw Errors.lasting(error);
    }
  }

  @Override
  public Observation promised(Collection<Promise> wanted, Duration timeout) {
    Link asked = link.allWithin(timeout);
    try {
      Observation.Builder shown = Observation.of(hello(asked).incarnation());
      BsonDocument reply = asked.read(promises, Records.search(wanted, isMajority));
      Records.read(reply, wanted).forEach(shown::promise);
      return shown.build();
    } catch (MongoException error) {
      throw Errors.lasting(Records.explained(error, promises));
    }
  }

  @Override
  public boolean isReplica(Duration timeout) {
    return !link.allWithin(timeout).hello().isPrimary();
  }

  /** The connection is the pool's. */
  @Override
  public void close() {}
}
