package org.example;

import java.util.List;

/** Stores <b>things</b>, see {@link Shop}. */
@Deprecated
public class Depot<T> extends Thread {
  static final int LIMIT = compute();
  private int count = 3;

  static {
    register();
  }

  {
    prepare();
  }

  /** Makes one. */
  public Depot(int count) {
    this.count = count;
  }

  /**
   * Moves it.
   */
  @Override
  public <U> void run(int x, List<? extends T> items, String... more) {
    items.forEach(item -> {
      load(item);
    });
    Runnable task = new Runnable() {
      @Override
      public void run() {
        unload();
      }
    };
    class Local {
      void help() {
        assist();
      }
    }
    other.call(Depot::compute);
  }

  abstract void todo();

  enum Size {
    SMALL {
      int area() {
        return 1;
      }
    },
    LARGE;

    int area() {
      return 2;
    }
  }

  interface Plan {
    int q();

    default int d() {
      return 1;
    }
  }

  record Pair(int a) {
    Pair {
      check(a);
    }
  }

  static class Holder {
    Holder() {}

    void hold() {}
  }
}
