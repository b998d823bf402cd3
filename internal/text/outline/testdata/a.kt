package store
import java.util.*

/** An index. */
@Serializable
data class Index<T>(val path: String, private val n: Int = 3) : Base(path), Closeable {
    companion object {
        const val MAX = 3
        fun open(path: String): Index<Int> = Index(path)
    }

    override suspend fun search(text: String): List<T> {
        val s = "${if (n > 0) "fun x() {" else ""}"
        return listOf()
    }

    fun size() =
        items.map { it }
            .size
}

sealed interface Shape
object Registry : Base() { init { } }
fun <T> List<T>.second(): T = this[1]
typealias Ids = Set<String>
fun `has blanks`() { }

public fun <A, R> ((A) -> R).applied(a: A): R = this(a)
suspend fun <T> (suspend () -> T)?.orNull(): T? { return this?.invoke() }
private val Path.slash: String?
    get() { return null }
val <T> List<T>.last by lazy { 1 }
expect class Sink
/** Its constructor. */
internal constructor(
    sink: Int,
) : Base {
    constructor(n: String)
    fun close()
}
