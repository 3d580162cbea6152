package io.antipode.programs

import io.opentelemetry.context.Context
import io.opentelemetry.extension.kotlin.asContextElement
import java.util.Random
import java.util.concurrent.TimeoutException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.single
import kotlinx.coroutines.future.await
import kotlinx.coroutines.future.future
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout

/** [RandomJdbc] in handlers in Kotlin: each call is made in a coroutine, by a way that is drawn. */
fun main(arguments: Array<String>) = RandomJdbc.run(arguments, ::InCoroutines)

/** Within how much time a call is made that is given up then. */
private const val GIVEN_UP_MS = 10

private typealias Way = suspend CoroutineScope.(call: () -> Unit) -> Unit

private val WAYS: List<Way> =
    listOf(
        { call -> withContext(Dispatchers.IO) { call() } },
        { call ->
            withContext(Dispatchers.IO) {
                delay(1)
                withContext(Dispatchers.Default) { call() }
            }
        },
        { call -> async(Dispatchers.Default) { call() }.await() },
        { call -> coroutineScope { launch(Dispatchers.IO) { call() } } },
        { call ->
            supervisorScope {
                val failing = async(Dispatchers.IO) { error("it is another coroutine's") }
                val calling = async(Dispatchers.IO) { call() }
                runCatching { failing.await() }
                calling.await()
            }
        },
        { call -> flow { emit(call()) }.flowOn(Dispatchers.IO).single() },
        { call -> future(Dispatchers.IO) { call() }.await() },
        { call ->
            delay(1)
            call()
        },
    )

/** What interrupts a call that takes too long, or has just ended. */
private fun givenUp(ms: Int): Way = { call ->
    try {
        withTimeout(ms.toLong()) { runInterruptible(Dispatchers.IO) { call() } }
    } catch (late: TimeoutCancellationException) {
        throw TimeoutException(late.message)
    }
}

private class InCoroutines(private val plain: Client, private val random: Random) : Client {
    override fun use(): Client.Use = Using(made(true) { plain.use() })

    override fun close() = plain.close()

    /** Makes a call in a coroutine of the request's that is current; perhaps not [whole]. */
    private fun <T> made(whole: Boolean, call: () -> T): T {
        val drawn = random.nextInt(if (whole) WAYS.size else WAYS.size + 1)
        val way = WAYS.getOrElse(drawn) { givenUp(1 + random.nextInt(GIVEN_UP_MS)) }
        val found = mutableListOf<T>()
        runBlocking(Context.current().asContextElement()) { way { found += call() } }
        return found.single()
    }

    private inner class Using(private val use: Client.Use) : Client.Use {
        override fun actions(isWriting: Boolean): List<Client.Action> =
            use.actions(isWriting).map { each ->
                Client.Action(each.name()) { made(false) { each.doing().run() } }
            }

        override fun end(commits: Boolean) = made(false) { use.end(commits) }

        override fun value(): Long = made(true) { use.value() }

        override fun giveUp() = use.giveUp()

        override fun close() = made(true) { use.close() }
    }
}
