package io.antipode.spring;

import com.mongodb.MongoClientSettings;
import com.mongodb.MongoDriverInformation;
import com.mongodb.ReadPreference;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.connection.ClusterDescription;
import com.mongodb.connection.ClusterSettings;
import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mongodb.MongoInstrumentation;
import io.antipode.mongodb.MongoShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.autoconfigure.mongo.MongoClientFactorySupport;
import org.springframework.boot.autoconfigure.mongo.MongoClientSettingsBuilderCustomizer;

/** Makes clients with Boot's settings, and shims, which are closed with the application. */
final class InstrumentedMongoClients implements DisposableBean {
  /** Where Table 2 would keep values; nothing here uses it. */
  private static final String COLLECTION = "antipode_kv";

  private final AntipodeMongoDbProperties properties;
  private final DatastoreRules rules;
  private final String database;
  private final Factory factory;
  private final InstrumentedBeans report;
  private final List<MongoShim> shims = new ArrayList<>();

  InstrumentedMongoClients(
      AntipodeMongoDbProperties properties,
      DatastoreRules rules,
      String database,
      List<MongoClientSettingsBuilderCustomizer> customizers,
      InstrumentedBeans report) {
    this.properties = properties;
    this.rules = rules;
    this.report = report;
    this.database = properties.database() == null ? database : properties.database();
    this.factory = new Factory(customizers);
  }

  private final class Factory extends MongoClientFactorySupport<MongoClient> {
    Factory(List<MongoClientSettingsBuilderCustomizer> customizers) {
      super(customizers, InstrumentedMongoClients.this::made);
    }
  }

  MongoClient create(MongoClientSettings settings) {
    return factory.createMongoClient(settings);
  }

  /** Returns the shim of the first client; null where no rule names it. */
  @Nullable MongoShim shim() {
    return shims.isEmpty() ? null : shims.get(0);
  }

  /** Returns the addresses that a client was given. */
  static List<Place> places(ClusterDescription cluster) {
    return places(cluster.getClusterSettings());
  }

  private static List<Place> places(ClusterSettings cluster) {
    String srv = cluster.getSrvHost();
    return srv != null
        ? List.of(Place.of(srv, 0))
        : cluster.getHosts().stream()
            .map(each -> Place.of(each.getHost(), each.getPort()))
            .toList();
  }

  private MongoClient made(MongoClientSettings settings, MongoDriverInformation driver) {
    String named = properties.datastore();
    List<Place> places = places(settings.getClusterSettings());
    DatastoreRule rule = rules.find(Store.MONGODB, places, null);
    String datastore = named == null && rule != null ? rule.datastore() : named;
    if (datastore == null) {
      return MongoClients.create(settings, driver);
    }
    if (datastore.isBlank()) {
      throw new ConfigurationException(
          "antipode.mongodb.datastore names the datastore, as every service does");
    }
    boolean isOther = rule == null || !datastore.equals(rule.datastore());
    ReadsFrom readsFrom = readsFrom(isOther ? null : rule, settings.getReadPreference());
    MongoShim shim =
        MongoShim.builder(datastore, settings, database, COLLECTION)
            .readsFrom(readsFrom)
            .register();
    shims.add(shim);
    if (KillSwitch.isDisabled()) {
      return MongoClients.create(settings, driver);
    }
    report.instrumented("mongo", datastore, readsFrom, null);
    MongoClientSettings.Builder prepared = MongoClientSettings.builder(settings);
    MongoInstrumentation instrumentation = MongoInstrumentation.prepare(shim, prepared);
    return instrumentation.instrument(MongoClients.create(prepared.build(), driver));
  }

  /** Returns what properties say, or a rule, or where that one does not the client's preference. */
  private ReadsFrom readsFrom(@Nullable DatastoreRule rule, ReadPreference preference) {
    if (properties.readsFrom() != null) {
      return properties.readsFrom();
    }
    if (rule == null) {
      return ReadsFrom.PRIMARY;
    }
    if (rule.readsFrom() != null) {
      return rule.readsFrom();
    }
    return preference.equals(ReadPreference.primary()) ? ReadsFrom.PRIMARY : ReadsFrom.REPLICA;
  }

  @Override
  public void destroy() {
    shims.forEach(MongoShim::close);
  }
}
