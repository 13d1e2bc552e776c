package org.example;

import java.util.List;
import java.util.function.Function;

/** Calls of every kind.  Compiled beside it by `javac -g:lines,source -d /tmp tests/data/classes/Calls.java`. */
public class Calls {
  interface Store {
    int read(String name);

    default int twice(String name) {
      return read(name) + read(name);
    }
  }

  static class Disk implements Store {
    @Override
    public int read(String name) {
      return name.length();
    }
  }

  static class Cached extends Disk {
    @Override
    public int read(String name) {
      return 0;
    }

    int reallyRead(String name) {
      return super.read(name);
    }
  }

  static int over(int x) {
    return x;
  }

  static int over(long x) {
    return (int) x;
  }

  int virtual(Store store, Disk disk, Cached cached) {
    return store.read("a") + disk.read("b") + cached.read("c") + cached.twice("d");
  }

  int overloads() {
    return over(1) + over(1L);
  }

  Function<String, Integer> lambdas(Store store, List<String> names) {
    names.forEach(name -> store.read(name));
    return store::read;
  }

  long branches(int x) {
    switch (x) {
      case 1: case 2: case 3: case 4:
        return over(x);
      case 1000: case -5:
        return over(-x);
      default:
        return names().size();
    }
  }

  static List<String> names() {
    return List.of("x" + System.nanoTime());
  }

  native void nothing();
}
