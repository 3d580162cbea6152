package io.antipode.mongodb;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import com.mongodb.MongoClientSettings;
import com.mongodb.ServerAddress;
import com.mongodb.connection.ClusterId;
import com.mongodb.connection.ConnectionId;
import com.mongodb.connection.ServerId;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import org.bson.BsonDocument;
import org.junit.jupiter.api.Test;

/** What is known of reads of either concern, without a server. */
class MemoryTest {
  private static final ServerAddress SERVER = new ServerAddress("localhost", 1);
  private static final WriteId WRITE = WriteId.of("posts", "rs.3", 5);

  private final ConnectionId connection = new ConnectionId(new ServerId(new ClusterId(), SERVER));

  /** What local reads, or a barrier's, have shown is no proof for reads of what a majority has. */
  @Test
  void localProofsAreNoneForReadsOfWhatAMajorityHas() {
    try (MongoShim shim =
            MongoShim.builder("posts", "mongodb://localhost:1", "app", "posts").register();
        ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(9)).atRead());
      Floor floor = requireNonNull(Floor.current(shim));
      Memory memory = new Memory(false);
      Memory committed = new Memory(true);
      memory.learn(connection, "server-1", floor, false);
      committed.learn(connection, "server-1", floor, false);
      assertThat(memory.shows(connection, floor, false)).isTrue();
      assertThat(committed.shows(connection, floor, true)).isFalse();
      assertThat(floor.accepts(Observation.of("server-1").write(WRITE, Status.VISIBLE).build()))
          .isTrue();
      assertThat(memory.shows(connection, floor, true)).isFalse();
      assertThat(committed.shows(connection, floor, true)).isTrue();
      memory.learn(connection, "server-1", floor, true);
      assertThat(memory.shows(connection, floor, true)).isTrue();
    }
  }

  /** Batches of cursors are reads of what a majority has, once a read of their client was one. */
  @Test
  void cursorsReadWhatAMajorityHasOnceAReadDid() {
    BsonDocument batch = BsonDocument.parse("{getMore: 1, collection: 'c'}");
    Concerns concerns = new Concerns("posts");
    try (Members members = new Members(MongoClientSettings.builder().build())) {
      Link server = members.at(SERVER);
      concerns.answered("local");
      assertThat(concerns.isMajority(batch, server, Duration.ofSeconds(1))).isFalse();
      concerns.answered("majority");
      concerns.answered("local");
      assertThat(concerns.isMajority(batch, server, Duration.ofSeconds(1))).isTrue();
    }
  }
}
