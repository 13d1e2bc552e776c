package org.example

extension (x: Int)
  def double: Int = x * 2

class Indented:
  def f(x: Int): Int =
    val y = x
    y + 1
end Indented

given ordering: Ordering[Indented] with
  def compare(a: Indented, b: Indented) = 0

enum Colour:
  case Red, Green
  def hex: String = "#"

def top(x: Int): Int = x
