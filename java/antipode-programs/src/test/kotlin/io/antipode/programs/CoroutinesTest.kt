package io.antipode.programs

import com.zaxxer.hikari.HikariConfig
import com.zaxxer.hikari.HikariDataSource
import io.antipode.Antipode
import io.antipode.barrier.BarrierOptions
import io.antipode.barrier.Barriers
import io.antipode.barrier.ReadsFrom
import io.antipode.lab.Lab
import io.antipode.postgresql.PostgreSqlShim
import io.opentelemetry.context.Context
import io.opentelemetry.extension.kotlin.asContextElement
import java.time.Duration
import javax.sql.DataSource
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.single
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test

/** Handlers in Kotlin, whose coroutines write and read on other threads than their request's. */
@Tag("lab")
class CoroutinesTest {
    private fun url(servers: String) = "jdbc:postgresql://127.0.0.1:${Lab.port(servers)}/app"

    private fun pool(servers: String): HikariDataSource {
        val config = HikariConfig()
        config.jdbcUrl = url(servers)
        config.username = "app"
        config.password = "app"
        return HikariDataSource(config)
    }

    private fun run(pool: DataSource, sql: String): Int =
        pool.connection.use { connection ->
            connection.createStatement().use { statement ->
                if (!statement.execute(sql)) return 0
                statement.resultSet.use { rows -> if (rows.next()) rows.getInt(1) else 0 }
            }
        }

    /** By each way to another thread a write enters the request's lineage, and a read waits. */
    @Test
    fun whatACoroutineDoesIsOfItsRequest() {
        val ways: Map<String, suspend CoroutineScope.(block: suspend () -> Int) -> Int> =
            mapOf(
                "withContext" to { block -> withContext(Dispatchers.IO) { block() } },
                "async" to { block -> async(Dispatchers.Default) { block() }.await() },
                "launch" to
                    { block ->
                        var found = 0
                        coroutineScope { launch(Dispatchers.IO) { found = block() } }
                        found
                    },
                "flow" to { block -> flow { emit(block()) }.flowOn(Dispatchers.IO).single() },
            )
        Lab.start("postgresql", LAG_MS).use { lab ->
            val primary = PostgreSqlShim.builder("orders", url(lab.url())).user("app", "app").register()
            val standby =
                PostgreSqlShim.builder("orders", url(lab.otherUrl()))
                    .user("app", "app")
                    .readsFrom(ReadsFrom.REPLICA)
                    .register()
            pool(lab.url()).use { writing ->
                pool(lab.otherUrl()).use { reading ->
                    run(writing, "CREATE TABLE kept (id int PRIMARY KEY)")
                    val writes = primary.instrument(writing)
                    val reads = standby.instrument(reading)
                    var id = 0
                    for ((name, way) in ways) {
                        id++
                        Antipode.scope().use {
                            val request = Thread.currentThread()
                            runBlocking(Context.current().asContextElement()) {
                                way {
                                    delay(1)
                                    assertThat(Thread.currentThread()).isNotSameAs(request)
                                    run(writes, "INSERT INTO kept VALUES ($id)")
                                }
                                assertThat(Antipode.current().writes()).`as`(name).isNotEmpty()
                                Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)).atRead())
                                val found = way {
                                    delay(1)
                                    run(reads, "SELECT id FROM kept WHERE id = $id")
                                }
                                assertThat(found).`as`(name).isEqualTo(id)
                            }
                        }
                    }
                }
            }
            standby.close()
            primary.close()
        }
    }

    private companion object {
        /** So that a read which does not wait finds nothing. */
        const val LAG_MS = 300
    }
}
