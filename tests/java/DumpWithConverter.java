import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import one.jfr.ClassRef;
import one.jfr.JfrReader;
import one.jfr.MethodRef;
import one.jfr.StackTrace;
import one.jfr.event.Event;
import one.jfr.event.ExecutionSample;

/** Prints sampled stacks as async-profiler's converter reads them:
 *  E start_ns thread_name samples state frames, frames leaf first as class, method, descriptor, line.
 *  Each line of standard input names a recording; its lines end with one that says DONE or FAILED. */
public class DumpWithConverter {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String name; (name = names.readLine()) != null; ) {
            try {
                dump(name, out);
                out.println("DONE");
            } catch (Exception | LinkageError problem) {
                problem.printStackTrace();
                out.println("FAILED");
            }
            out.flush();
        }
    }

    static void dump(String name, PrintStream out) throws Exception {
        try (JfrReader reader = new JfrReader(name)) {
            reader.stopAtNewChunk = true;
            do {
                for (Event event; (event = reader.readEvent()) != null; ) {
                    if (!(event instanceof ExecutionSample)) {
                        continue;
                    }
                    ExecutionSample sample = (ExecutionSample) event;
                    String state = sample.threadState == ExecutionSample.CPU_TIME_SAMPLE ? ""
                        : reader.getEnumValue("jdk.types.ThreadState", sample.threadState);
                    out.println("E\t" + reader.eventTimeToNanos(sample.time)
                        + "\t" + reader.threads.get(sample.tid)
                        + "\t" + sample.samples + "\t" + state
                        + "\t" + text(reader, reader.stackTraces.get(sample.stackTraceId)));
                }
            } while (reader.hasMoreChunks());
        }
    }

    static String text(JfrReader reader, StackTrace stack) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; stack != null && i < stack.methods.length; i++) {
            MethodRef method = reader.methods.get(stack.methods[i]);
            ClassRef type = method == null ? null : reader.classes.get(method.cls);
            text.append(type == null ? "" : symbol(reader, type.name)).append('\u0001')
                .append(method == null ? "" : symbol(reader, method.name)).append('\u0001')
                .append(method == null ? "" : symbol(reader, method.sig)).append('\u0001')
                .append(stack.locations[i] >>> 16).append('\u0002');
        }
        return text.toString().replace("\n", " ");
    }

    static String symbol(JfrReader reader, long key) {
        byte[] bytes = reader.symbols.get(key);
        return bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
    }
}
