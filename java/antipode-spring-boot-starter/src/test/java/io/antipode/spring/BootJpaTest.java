package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.opentelemetry.context.Context;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import javax.sql.DataSource;
import net.ttddyy.dsproxy.support.ProxyDataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.config.EnableJpaRepositories;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** Transactions of Spring and a JPA repository, over a primary and a replica. */
@Tag("lab")
@TestInstance(Lifecycle.PER_CLASS)
abstract class BootJpaTest {
  private static final BarrierOptions SOON = BarrierOptions.timeout(Duration.ofSeconds(20));
  private static final BarrierOptions AT_ONCE = BarrierOptions.timeout(Duration.ofMillis(200));

  private final String store;
  private Lab lab;
  private ConfigurableApplicationContext application;
  private Service service;

  /** Claims of a store, which is named as JDBC names it. */
  BootJpaTest(String store) {
    this.store = store;
  }

  @Configuration
  @EnableAutoConfiguration
  @EnableJpaRepositories(considerNestedRepositories = true)
  static class Application {
    @Bean(defaultCandidate = false)
    DataSource primary(@Value("${urls.primary}") String url) {
      return new ProxyDataSource(pool(url)); // As an application's own decorator.
    }

    @Bean(defaultCandidate = false)
    DataSource replica(@Value("${urls.replica}") String url) {
      return pool(url);
    }

    /** A pool that runs already, which nobody can change any more. */
    @Bean(defaultCandidate = false)
    DataSource running(@Value("${urls.primary}") String url) {
      HikariConfig config = new HikariConfig();
      config.setJdbcUrl(url);
      config.setUsername("app");
      config.setPassword("app");
      return new HikariDataSource(config);
    }

    /** Transactions that only read are the replica's. */
    @Bean
    @Primary
    DataSource dataSource(
        @Qualifier("primary") DataSource primary, @Qualifier("replica") DataSource replica) {
      LazyConnectionDataSourceProxy routed = new LazyConnectionDataSourceProxy(primary);
      routed.setReadOnlyDataSource(replica);
      return routed;
    }

    /** As the other one, but a transaction reads at the primary what the replica lacks. */
    @Bean(defaultCandidate = false)
    DataSource routed(
        @Qualifier("primary") DataSource primary, @Qualifier("replica") DataSource replica) {
      return new PrimaryWhenStaleDataSource(primary, replica);
    }

    @Bean
    Audit audit(Posts posts) {
      return new Audit(posts);
    }

    @Bean
    Service service(Posts posts, Audit audit) {
      return new Service(posts, audit);
    }

    private static DataSource pool(String url) {
      HikariDataSource pool = new HikariDataSource();
      pool.setJdbcUrl(url);
      pool.setUsername("app");
      pool.setPassword("app");
      return pool;
    }
  }

  @Entity(name = "Post")
  @Table(name = "boot_posts")
  static class Post {
    @Id private long id;
    private String text;

    /** For Hibernate. */
    protected Post() {}

    Post(long id, String text) {
      this.id = id;
      this.text = text;
    }
  }

  interface Posts extends JpaRepository<Post, Long> {}

  static class Audit {
    private final Posts posts;

    Audit(Posts posts) {
      this.posts = posts;
    }

    @Transactional(propagation = Propagation.REQUIRES_NEW)
    public void note(long id) {
      Post unused = posts.save(new Post(id, "noted"));
    }

    /** Reads at the replica, within a transaction that the other one waits for. */
    @Transactional(propagation = Propagation.REQUIRES_NEW, readOnly = true)
    public boolean isThere(long id) {
      return posts.findById(id).isPresent();
    }
  }

  static class Service {
    private final Posts posts;
    private final Audit audit;

    Service(Posts posts, Audit audit) {
      this.posts = posts;
      this.audit = audit;
    }

    /** Returns the lineage before the commit. */
    @Transactional
    public Lineage write(long id) {
      Post unused = posts.saveAndFlush(new Post(id, "hello"));
      return Antipode.current();
    }

    @Transactional
    public void fail(long id) {
      Post unused = posts.saveAndFlush(new Post(id, "never"));
      throw new IllegalStateException("of the service");
    }

    /** Returns the lineage after a commit within another transaction. */
    @Transactional
    public Lineage writeAndNote(long id, long note, boolean fails) {
      Post unused = posts.saveAndFlush(new Post(id, "hello"));
      audit.note(note);
      Lineage noted = Antipode.current();
      if (fails) {
        throw new IllegalStateException(noted.serialize());
      }
      return noted;
    }

    /** Returns whether another transaction, which only reads, sees what is not committed. */
    @Transactional
    public boolean writeAndLook(long id) {
      Post unused = posts.saveAndFlush(new Post(id, "hello"));
      return audit.isThere(id);
    }

    /** Returns the lineage that a call carries which is made before the commit. */
    @Transactional
    public Lineage writeAndCall(long id) {
      Post unused = posts.saveAndFlush(new Post(id, "hello"));
      Map<String, String> headers = new HashMap<>();
      AntipodePropagator.baggage().inject(Context.current(), headers, Map::put);
      return Lineage.deserialize(headers.get("baggage").replace("antipode=", ""));
    }

    @Transactional(readOnly = true)
    public Optional<String> read(long id) {
      return posts.findById(id).map(post -> post.text);
    }

    @Transactional(readOnly = true)
    public Optional<String> readAfter(long first, BarrierOptions barrier, long id) {
      Optional<Post> unused = posts.findById(first);
      BarrierResult ignored = Barriers.barrier(barrier);
      return posts.findById(id).map(post -> post.text);
    }
  }

  /** Returns the URL of a server's, as JDBC has it. */
  String jdbc(String url) {
    return "jdbc:" + store + "://127.0.0.1:" + Lab.port(url) + "/app";
  }

  /** Returns what names the replica's pool. */
  List<String> replicaSettings(String rule) {
    return List.of(
        "--antipode.datastores=" + rule,
        "--antipode.mysql.pools.replica.datastore=posts",
        "--antipode.mysql.pools.replica.reads-from=replica");
  }

  Lab lab() {
    return lab;
  }

  @BeforeAll
  void start() throws Exception {
    lab = Lab.start(store);
    SpringApplication main = new SpringApplication(Application.class);
    main.setWebApplicationType(WebApplicationType.NONE);
    List<String> settings =
        new ArrayList<>(
            List.of(
                "--spring.autoconfigure.exclude=" + MongoAutoConfiguration.class.getName(),
                "--spring.jpa.hibernate.ddl-auto=create",
                "--urls.primary=" + jdbc(lab.url()),
                "--urls.replica=" + jdbc(lab.otherUrl())));
    settings.addAll(replicaSettings("posts=" + store + "://127.0.0.1:" + Lab.port(lab.url())));
    application = main.run(settings.toArray(String[]::new));
    service = application.getBean(Service.class);
  }

  @AfterAll
  void stop() throws Exception {
    if (application != null) {
      application.close();
    }
    if (lab != null) { // Without a server there is neither.
      lab.close();
    }
  }

  /** Keeps the replica from applying what is written to the table. */
  AutoCloseable held() throws SQLException {
    Connection connection = DriverManager.getConnection(jdbc(lab.otherUrl()), "app", "app");
    try (Statement statement = connection.createStatement()) {
      boolean unused = statement.execute("LOCK TABLES boot_posts READ");
    }
    return connection;
  }

  private static WriteId written() {
    Lineage lineage = Antipode.current();
    assertThat(lineage.incomplete()).isEmpty();
    List<WriteId> writes = lineage.writes();
    assertThat(writes).hasSize(1);
    assertThat(writes.get(0).datastore()).isEqualTo("posts");
    return writes.get(0);
  }

  /** Returns the lineage of a request that wrote a row, as the next service gets it. */
  private String request(long id) {
    try (ScopeBlock request = Antipode.scope()) {
      assertThat(service.write(id)).as("before the commit").isEqualTo(Lineage.empty());
      WriteId unused = written();
      return Antipode.serialize();
    }
  }

  private static void timesOut(ThrowingCallable call) {
    assertThatThrownBy(call)
        .satisfies(
            error ->
                assertThat(Stream.iterate(error, each -> each != null, Throwable::getCause))
                    .hasAtLeastOneElementOfType(BarrierTimeoutException.class));
  }

  /** Makes the table known to the replica, which may lag behind the start. */
  private void reaches(String lineage, long id) {
    try (ScopeBlock reader = Antipode.scope(lineage)) {
      BarrierResult unused = Barriers.barrier(SOON);
      assertThat(service.read(id)).hasValue("hello");
    }
  }

  @Test
  void aReaderAtTheReplicaSeesTheRow() {
    reaches(request(10), 10);
  }

  @Test
  void aBarrierWaitsForTheCommit() throws Exception {
    reaches(request(20), 20);
    String lineage;
    try (AutoCloseable held = held()) {
      lineage = request(21);
      try (ScopeBlock reader = Antipode.scope(lineage)) {
        assertThat(service.read(21)).as("without a barrier").isEmpty();
        timesOut(() -> Barriers.barrier(AT_ONCE));
      }
    }
    reaches(lineage, 21);
  }

  @Test
  void theReadOfATransactionWaits() throws Exception {
    reaches(request(30), 30);
    String lineage;
    try (AutoCloseable held = held()) {
      lineage = request(31);
      try (ScopeBlock reader = Antipode.scope(lineage)) {
        BarrierResult unused = Barriers.barrier(AT_ONCE.atRead());
        timesOut(() -> service.read(31));
      }
    }
    try (ScopeBlock reader = Antipode.scope(lineage)) {
      BarrierResult unused = Barriers.barrier(SOON.atRead());
      assertThat(service.read(31)).hasValue("hello");
    }
  }

  @Test
  void aTransactionThatHasReadDoesNotSeeWhatABarrierWaitedFor() throws Exception {
    reaches(request(40), 40);
    String lineage = request(41);
    try (ScopeBlock reader = Antipode.scope(lineage)) {
      assertThatThrownBy(() -> service.readAfter(40, SOON, 41))
          .satisfies(
              error ->
                  assertThat(Stream.iterate(error, each -> each != null, Throwable::getCause))
                      .hasAtLeastOneElementOfType(StaleSnapshotException.class));
    }
  }

  @Test
  void aRollbackEntersNothing() {
    reaches(request(50), 50);
    try (ScopeBlock request = Antipode.scope()) {
      assertThatThrownBy(() -> service.fail(51)).isInstanceOf(IllegalStateException.class);
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
      assertThat(service.read(51)).isEmpty();
      assertThat(Antipode.current()).as("a transaction that only reads").isEqualTo(Lineage.empty());
    }
  }

  @Test
  void aTransactionWithinAnotherEntersByItself() {
    try (ScopeBlock request = Antipode.scope()) {
      Lineage noted = service.writeAndNote(60, 61, false);
      assertThat(noted.writes()).hasSize(1);
      assertThat(written().version()).isGreaterThan(noted.writes().get(0).version());
      BarrierResult unused = Barriers.barrier(SOON);
      assertThat(service.read(60)).hasValue("hello");
      assertThat(service.read(61)).hasValue("noted");
    }
  }

  @Test
  void aTransactionWithinOneThatIsRolledBackStays() {
    try (ScopeBlock request = Antipode.scope()) {
      assertThatThrownBy(() -> service.writeAndNote(70, 71, true))
          .isInstanceOf(IllegalStateException.class)
          .satisfies(error -> assertThat(error).hasMessage(Lineage.of(written()).serialize()));
      BarrierResult unused = Barriers.barrier(SOON);
      assertThat(service.read(70)).isEmpty();
      assertThat(service.read(71)).hasValue("noted");
    }
  }

  /** Its writes have positions all the same, also after an error on their connection. */
  @Test
  void aTemplateOverAPoolThatRunsAlready() {
    JdbcTemplate template = new JdbcTemplate(application.getBean("running", DataSource.class));
    String insert = "INSERT INTO boot_posts (id, text) VALUES (?, 'hello')";
    for (long id = 80; id < 88; id++) {
      long row = id;
      try (ScopeBlock request = Antipode.scope()) {
        int unused = template.update(insert, row);
        assertThat(Antipode.current().writes()).isNotEmpty();
        assertThat(Antipode.current().incomplete()).isEmpty();
        BarrierResult ignored = Barriers.barrier(SOON);
        assertThat(service.read(row)).hasValue("hello");
        assertThatThrownBy(() -> template.update(insert, row))
            .isInstanceOf(DuplicateKeyException.class);
      }
    }
  }

  /** At the replica again, once that shows what the request depends on. */
  @Test
  void whatTheReplicaLacksIsReadAtThePrimary() throws Exception {
    reaches(request(110), 110);
    Counts.Metric moved = new Counts.Metric("reads_at_primary", "posts");
    long before = Counts.all().getOrDefault(moved, 0L);
    Settings plain =
        Settings.configure(
            held ->
                held.withBarriers(ReadBarriers.AUTO)
                    .withAutoTimeout(Duration.ofMillis(100))
                    .withOnStale(OnStale.PRIMARY));
    try {
      String lineage;
      try (AutoCloseable held = held()) {
        lineage = request(111);
        try (ScopeBlock reader = Antipode.scope(lineage)) {
          assertThat(routed(111)).isEqualTo(List.of("hello"));
          assertThat(Counts.all().get(moved)).isEqualTo(before + 1);
          timesOut(() -> service.read(111)); // By a router that does not ask.
        }
      }
      try (ScopeBlock reader = Antipode.scope(lineage)) {
        BarrierResult unused = Barriers.barrier(SOON);
        assertThat(routed(111)).isEqualTo(List.of("hello"));
        assertThat(Counts.all().get(moved)).isEqualTo(before + 1);
      }
    } finally {
      Settings unused = Settings.configure(held -> plain);
    }
  }

  /** Returns the texts of a row, read in a transaction that only reads. */
  private List<String> routed(long id) {
    DataSource routed = application.getBean("routed", DataSource.class);
    TransactionTemplate transaction =
        new TransactionTemplate(new DataSourceTransactionManager(routed));
    transaction.setReadOnly(true);
    String select = "SELECT text FROM boot_posts WHERE id = ?";
    return transaction.execute(
        status -> new JdbcTemplate(routed).queryForList(select, String.class, id));
  }

  /** No wait can help there, so it is counted. */
  @Test
  void aTransactionWithinAnotherThatReadsWhatIsNotCommitted() {
    reaches(request(90), 90);
    Counts.Metric before = new Counts.Metric("read_before_commit", "posts");
    try (ScopeBlock request = Antipode.scope()) {
      long counted = Counts.all().getOrDefault(before, 0L);
      assertThat(service.writeAndLook(91)).isFalse();
      assertThat(Counts.all().getOrDefault(before, 0L)).isEqualTo(counted + 1);
      BarrierResult unused = Barriers.barrier(SOON);
      assertThat(service.read(91)).hasValue("hello");
      assertThat(Counts.all().getOrDefault(before, 0L)).isEqualTo(counted + 1);
    }
  }

  /** It lacks what its own transaction wrote, so it is counted; after the commit nothing is. */
  @Test
  void aCallBeforeTheCommitIsCounted() {
    Counts.Metric metric = new Counts.Metric("sent_before_commit", "posts");
    try (ScopeBlock request = Antipode.scope()) {
      long counted = Counts.all().getOrDefault(metric, 0L);
      assertThat(service.writeAndCall(95).writes()).isEmpty();
      assertThat(Counts.all().getOrDefault(metric, 0L)).isEqualTo(counted + 1);
      assertThat(Lineage.deserialize(request.scope().text()).writes()).isNotEmpty();
      assertThat(Counts.all().getOrDefault(metric, 0L)).isEqualTo(counted + 1);
    }
  }
}
