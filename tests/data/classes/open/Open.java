package org.example;

import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;

/** Calls that may mean more than is declared.  Compiled as ../Calls.java is. */
public class Open {
  interface Step {
    int run(int x);
  }

  static class Named implements Step {
    @Override
    public int run(int x) {
      return x;
    }
  }

  interface Sink {
    void put(int x);

    void put(long x);
  }

  interface Only {
    int once(int x);
  }

  static class Once implements Only {
    @Override
    public int once(int x) {
      return x;
    }
  }

  int steps(Step step) {
    return step.run(1);
  }

  Step made() {
    return x -> x + 1;
  }

  void sinks(Sink sink) {
    sink.put(1);
  }

  int only(Only one) {
    return one.once(1);
  }

  void twoOutside(InputStream input, Writer output) throws IOException {
    input.close();
    output.close();
  }

  void close() {}
}
