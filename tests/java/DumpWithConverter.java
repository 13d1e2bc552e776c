import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import one.jfr.ClassRef;
import one.jfr.JfrReader;
import one.jfr.MethodRef;
import one.jfr.StackTrace;
import one.jfr.event.Event;
import one.jfr.event.ExecutionSample;

/** Prints sampled stacks as async-profiler's converter reads them:
 *  E start_ns thread_name samples state frames, frames leaf first as class, method, descriptor, line. */
public class DumpWithConverter {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (JfrReader reader = new JfrReader(args[0])) {
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
        out.flush();
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
