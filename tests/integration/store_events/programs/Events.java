import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.lineage.Lineage;
import io.antipode.mongodb.MongoEvents;
import io.antipode.mongodb.MongoShim;
import io.antipode.mysql.MySqlEvents;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlEvents;
import io.antipode.postgresql.PostgreSqlShim;
import java.time.Duration;
import org.bson.BsonTimestamp;

/** Says what an event of a store depends on, and waits for it at the replica. */
public final class Events {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  public static void main(String[] args) {
    String user = args[3];
    String password = args[4];
    Lineage lineage =
        switch (args[0]) {
          case "postgresql" -> {
            PostgreSqlShim.builder("events", args[1]).user(user, password).register();
            PostgreSqlShim.builder("events", args[2])
                .user(user, password)
                .readsFrom(ReadsFrom.REPLICA)
                .register();
            yield PostgreSqlEvents.lineage("events", args[5]);
          }
          case "mongodb" -> {
            MongoShim.builder("events", args[1], "app", "events").register();
            MongoShim.builder("events", args[2], "app", "events")
                .readsFrom(ReadsFrom.REPLICA)
                .register();
            yield MongoEvents.lineage("events", new BsonTimestamp(Long.parseLong(args[5])));
          }
          default -> {
            MySqlShim.builder("events", args[1]).user(user, password).register();
            MySqlShim.builder("events", args[2])
                .user(user, password)
                .readsFrom(ReadsFrom.REPLICA)
                .register();
            yield MySqlEvents.lineage("events", args[5]);
          }
        };
    System.out.println(lineage.serialize());
    System.out.println(Antipode.asOfNow("events", TIMEOUT).serialize());
    System.out.println(Barriers.check(BarrierOptions.check().withLineage(lineage)).isOk());
    System.out.println(
        Barriers.barrier(BarrierOptions.timeout(TIMEOUT).withLineage(lineage)).isOk());
    System.exit(0);
  }
}
