package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mongodb.MongoInstrumentation;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Which clients of MongoDB the starter instruments. No server is asked. */
class MongoClientsTest {
  @RegisterExtension private final Logged logged = new Logged();

  private static final String NOWHERE = "mongodb://127.0.0.1:1/app?directConnection=true";

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  AntipodeMongoDbAutoConfiguration.class, MongoAutoConfiguration.class))
          .withPropertyValues("spring.data.mongodb.uri=" + NOWHERE);

  @Configuration
  static class OwnClient {
    @Bean
    MongoClient own() {
      return MongoClients.create(NOWHERE);
    }
  }

  @Test
  void bootsClientWhereAPropertyNamesItsDatastore() {
    application
        .withPropertyValues(
            "antipode.mongodb.datastore=posts", "antipode.mongodb.reads-from=replica")
        .run(
            context -> {
              assertThat(MongoInstrumentation.isInstrumented(context.getBean(MongoClient.class)))
                  .isTrue();
              assertThat(context.getBean(AntipodeMongoDbProperties.class).readsFrom())
                  .isEqualTo(ReadsFrom.REPLICA);
            });
  }

  /** Where a rule does not say it, the client's preference says where it reads. */
  @Test
  void bootsClientWhereARuleNamesItsAddress() {
    application
        .withPropertyValues("antipode.datastores=posts=mongodb://localhost:1")
        .withPropertyValues("spring.data.mongodb.uri=" + NOWHERE + "&readPreference=nearest")
        .run(
            context ->
                assertThat(MongoInstrumentation.isInstrumented(context.getBean(MongoClient.class)))
                    .isTrue());
    assertThat(logged.text()).contains("instrumented: mongo -> posts (replica)");
  }

  @Test
  void noneWhereNoPropertySaysSo() {
    for (String rule : List.of("", "posts=mongodb://other:1")) {
      application
          .withPropertyValues("antipode.datastores=" + rule)
          .run(
              context -> {
                MongoClient made = context.getBean(MongoClient.class);
                assertThat(MongoInstrumentation.isInstrumented(made)).isFalse();
              });
    }
    assertThat(logged.text()).contains("not instrumented: mongo (mongodb at localhost:1;");
  }

  @Test
  void aClientOfTheApplicationsStaysAsItIs() {
    application
        .withUserConfiguration(OwnClient.class)
        .withPropertyValues("antipode.mongodb.datastore=posts")
        .run(
            context -> {
              assertThat(context).hasSingleBean(MongoClient.class);
              assertThat(MongoInstrumentation.isInstrumented(context.getBean(MongoClient.class)))
                  .isFalse();
            });
  }

  @Test
  void anEmptyNameEndsTheStart() {
    application
        .withPropertyValues("antipode.mongodb.datastore=")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining(".datastore"));
  }
}
