package org.example
package shop

import scala.annotation.tailrec

/** Keeps the stock. */
class Shop[T](val name: String, deps: Seq[Int] = Nil) extends Serializable {
  def this(count: Int) = this(count.toString)

  private val opened = System.nanoTime()
  lazy val report: String = {
    render(opened)
  }

  /**
   * Adds an item.
   * @param item what
   */
  @tailrec
  final def +=(item: T): Unit = {
    def checked(value: T): T = value
    store(checked(item))
  }

  def sell[U](items: Seq[T])(make: T => U = null): Seq[U] =
    items.map { item =>
      log(item)
      make(item)
    }.filter { case null => false; case _ => true }

  def later: Iterator[T] = new Iterator[T] {
    override def hasNext: Boolean = more()
    override def next(): T = take()
  }

  def price(item: T): Int

  def kind(item: T): Int = item match {
    case _ => 1
  }
}

// A remark, not documentation.
object Shop {
  val limit = 10
  implicit class Rich(x: Int) {
    def twice: Int = x * 2
  }
  def apply(name: String): Shop[Int] = new Shop(name)
  class `odd name`
}

trait Closed {
  def close(): Unit = ()
  def open(): Unit
}

package object tools {
  def helper(x: Int): Int = x
}

class ::(x: Int) { def head: Int = x }
