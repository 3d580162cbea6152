package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** What properties of an application context set, and for how long. */
@ExtendWith(OutputCaptureExtension.class)
class ContextSettingsTest {
  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class));

  @Test
  void settingsEndWithTheirContext() {
    Settings before = Settings.current();
    application
        .withPropertyValues("antipode.barriers=auto")
        .run(context -> assertThat(Settings.current().barriers().name()).isEqualTo("AUTO"));
    assertThat(Settings.current()).isEqualTo(before);
  }

  @Test
  void aSecondContextHasItsPropertiesAlone() {
    application
        .withPropertyValues("antipode.barriers=auto", "antipode.region=eu")
        .run(
            first -> {
              application
                  .withPropertyValues("antipode.region=us")
                  .run(
                      second -> {
                        assertThat(Settings.current().barriers().name()).isEqualTo("EXPLICIT");
                        assertThat(Settings.current().region()).isEqualTo("us");
                      });
              assertThat(Settings.current().barriers().name()).isEqualTo("AUTO");
              assertThat(Settings.current().region()).isEqualTo("eu");
            });
  }

  @Test
  void aContextThatDoesNotStartLeavesNothing() {
    Settings before = Settings.current();
    application
        .withPropertyValues("antipode.barriers=auto")
        .withBean(
            "failing",
            InitializingBean.class,
            () ->
                () -> {
                  throw new IllegalStateException("of the application");
                },
            definition -> definition.setDependsOn(AntipodeAutoConfiguration.class.getName()))
        .run(context -> assertThat(context).hasFailed());
    assertThat(Settings.current()).isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource({"500ms, 500", "2s, 2000", "PT2S, 2000", "2.5, 2500", "3, 3000", "1m, 60000"})
  void durationsAreSpelledAsSpringDoes(String text, long millis) {
    application
        .withPropertyValues("antipode.auto-timeout=" + text)
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(Settings.current().autoTimeout()).isEqualTo(Duration.ofMillis(millis));
            });
  }

  /** As a migration does, in a bean of the application's or of Flyway's. */
  @Test
  void whatWritesOutsideOfAScopeIsAnErrorOnceTheContextHasStarted() {
    WriteId write = WriteId.of("posts", "log", 1).writtenAt(100);
    application
        .withPropertyValues("antipode.on-unscoped=raise")
        .withBean(
            "migration",
            InitializingBean.class,
            () ->
                () -> {
                  Lineage unused = Antipode.append(write);
                },
            definition -> definition.setDependsOn(AntipodeAutoConfiguration.class.getName()))
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThatThrownBy(() -> Antipode.append(write))
                  .isInstanceOf(ConfigurationException.class);
            });
  }

  @Test
  void propertiesAreInForceWhereBeansAreMadeAsTheyAreNeeded() {
    application
        .withInitializer(
            context ->
                context.addBeanFactoryPostProcessor(
                    new LazyInitializationBeanFactoryPostProcessor()))
        .withPropertyValues("antipode.on-unscoped=raise", "antipode.region=eu")
        .run(
            context -> {
              assertThat(Settings.current().region()).isEqualTo("eu");
              assertThat(Settings.current().onUnscoped()).isEqualTo(Policy.RAISE);
            });
  }

  @Test
  void aWrongPropertyIsExplained(CapturedOutput output) {
    SpringApplication main = new SpringApplication(AntipodeAutoConfiguration.class);
    main.setWebApplicationType(WebApplicationType.NONE);
    assertThatThrownBy(() -> main.run("--antipode.auto-timeout=soon"))
        .rootCause()
        .isInstanceOf(ConfigurationException.class);
    assertThat(output.getAll())
        .contains("APPLICATION FAILED TO START", "auto_timeout must be like", "Action:");
  }
}
