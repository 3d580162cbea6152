package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.mongodb.MongoShim;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.mongodb.MongoDatabaseFactory;
import org.springframework.data.mongodb.MongoTransactionManager;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring Data MongoDB on a real replica set, over Boot's client. */
@Tag("lab")
class BootMongoTest {
  private static Lab lab;
  private static ConfigurableApplicationContext application;

  private final MongoTemplate template = application.getBean(MongoTemplate.class);

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    MongoTransactionManager transactions(MongoDatabaseFactory factory) {
      return new MongoTransactionManager(factory);
    }
  }

  record Post(String id, String text) {}

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.start("mongodb");
    SpringApplication main = new SpringApplication(Application.class);
    main.setWebApplicationType(WebApplicationType.NONE);
    application =
        main.run(
            "--spring.autoconfigure.exclude=" + DataSourceAutoConfiguration.class.getName(),
            "--spring.data.mongodb.uri=" + lab.url(),
            "--spring.data.mongodb.database=app",
            "--antipode.datastores=posts=mongodb://127.0.0.1:" + Lab.port(lab.url()));
    application.getBean(MongoTemplate.class).createCollection(Post.class);
  }

  @AfterAll
  static void stop() throws Exception {
    if (lab != null) { // Without a server there is neither.
      application.close();
      lab.close();
    }
  }

  @Test
  void aTemplatesWriteEntersTheScope() {
    try (ScopeBlock request = Antipode.scope()) {
      Post unused = template.insert(new Post("1", "hello"));
      assertThat(Antipode.current().writes()).extracting(WriteId::datastore).containsOnly("posts");
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  @Test
  void aTransactionEntersAtItsCommit() {
    TransactionTemplate transactions =
        new TransactionTemplate(application.getBean(MongoTransactionManager.class));
    try (ScopeBlock request = Antipode.scope()) {
      transactions.executeWithoutResult(
          status -> {
            Post unused = template.insert(new Post("2", "never"));
            status.setRollbackOnly();
          });
      assertThat(Antipode.current().isEmpty()).isTrue();
      transactions.executeWithoutResult(
          status -> {
            Post unused = template.insert(new Post("2", "hello"));
            assertThat(Antipode.current().isEmpty()).isTrue();
          });
      assertThat(Antipode.current().writes()).hasSize(1);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  @Test
  void theShimIsABeanThatFulfilsPromises() {
    MongoShim posts = application.getBean(MongoShim.class);
    Promise promise;
    try (ScopeBlock request = Antipode.scope()) {
      promise = Antipode.promise("posts", Duration.ofMinutes(1));
      assertThatThrownBy(() -> Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(50))))
          .isInstanceOf(BarrierTimeoutException.class);
      template.createCollection("antipode_promises");
      try (ClientSession session = application.getBean(MongoClient.class).startSession()) {
        Post unused =
            session.withTransaction(
                () -> {
                  posts.fulfil(template.getDb(), session, promise);
                  return template.withSession(session).insert(new Post("4", "hello"));
                });
      }
      assertThat(Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20))).isOk()).isTrue();
    }
  }

  @Test
  void aReadWaits() {
    Lineage later;
    try (ScopeBlock writer = Antipode.scope()) {
      Post unused = template.insert(new Post("3", "hello"));
      WriteId last = Antipode.current().writes().get(0);
      later =
          Lineage.of(
              WriteId.of("posts", last.key(), last.version() + (1L << 42)).writtenAt(490_000));
    }
    try (ScopeBlock reader = Antipode.scope(later)) {
      Object unused = Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(100)).atRead());
      assertThatThrownBy(() -> template.findById("3", Post.class))
          .isInstanceOf(BarrierTimeoutException.class);
    }
    assertThat(template.findById("3", Post.class)).isEqualTo(new Post("3", "hello"));
  }
}
