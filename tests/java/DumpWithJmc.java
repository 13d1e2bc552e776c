import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCMethod;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.IMCType;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/** Prints the events that query.jfr decodes, as JDK Mission Control reads them, in tab-separated lines:
 *  S index truncated frames | E type start_ns end_ns java_tid thread_name stack_index state samples user system.
 *  Each line of standard input names a recording; its lines end with one that says DONE or FAILED. */
public class DumpWithJmc {
    static final Set<String> TYPES = Set.of("jdk.ExecutionSample", "jdk.NativeMethodSample",
        "profiler.WallClockSample", "jdk.CPUTimeSample", "jdk.SocketRead", "jdk.SocketWrite", "jdk.FileRead",
        "jdk.FileWrite", "jdk.FileForce", "jdk.ThreadPark", "jdk.ThreadSleep", "jdk.JavaMonitorWait",
        "jdk.JavaMonitorEnter", "jdk.ThreadCPULoad");

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
        Map<String, Integer> stacks = new HashMap<>();
        for (IItemIterable items : JfrLoaderToolkit.loadEvents(List.of(new File(name)))) {
            String type = items.getType().getIdentifier();
            if (!TYPES.contains(type)) {
                continue;
            }
            IMemberAccessor<IQuantity, IItem> start = JfrAttributes.START_TIME.getAccessor(items.getType());
            IMemberAccessor<IQuantity, IItem> end = JfrAttributes.END_TIME.getAccessor(items.getType());
            IMemberAccessor<IMCThread, IItem> thread = JfrAttributes.EVENT_THREAD.getAccessor(items.getType());
            IMemberAccessor<IMCStackTrace, IItem> trace = JfrAttributes.EVENT_STACKTRACE.getAccessor(items.getType());
            // Mission Control maps this field to the event's thread for the JDK's own events only.
            IMemberAccessor<?, IItem> sampled = member(items, "sampledThread");
            IMemberAccessor<?, IItem> state = member(items, "state");
            IMemberAccessor<?, IItem> samples = member(items, "samples");
            IMemberAccessor<?, IItem> user = member(items, "user");
            IMemberAccessor<?, IItem> system = member(items, "system");
            for (IItem item : items) {
                int stack = -1;
                IMCStackTrace frames = trace == null ? null : trace.getMember(item);
                if (frames != null) {
                    String text = text(frames);
                    Integer known = stacks.get(text);
                    if (known == null) {
                        known = stacks.size();
                        stacks.put(text, known);
                        out.println("S\t" + known + "\t" + text);
                    }
                    stack = known;
                }
                IMCThread who = thread == null ? null : thread.getMember(item);
                if (who == null && sampled != null) {
                    who = (IMCThread) sampled.getMember(item);
                }
                out.println("E\t" + type
                    + "\t" + start.getMember(item).longValueIn(UnitLookup.EPOCH_NS)
                    + "\t" + (end == null ? "" : end.getMember(item).longValueIn(UnitLookup.EPOCH_NS))
                    + "\t" + (who == null ? "" : who.getThreadId())
                    + "\t" + (who == null ? "" : who.getThreadName())
                    + "\t" + stack
                    + "\t" + value(state, item) + "\t" + value(samples, item)
                    + "\t" + value(user, item) + "\t" + value(system, item));
            }
        }
    }

    static IMemberAccessor<?, IItem> member(IItemIterable items, String name) {
        for (IAccessorKey<?> key : items.getType().getAccessorKeys().keySet()) {
            if (key.getIdentifier().equals(name)) {
                return items.getType().getAccessor(key);
            }
        }
        return null;
    }

    static String value(IMemberAccessor<?, IItem> accessor, IItem item) {
        Object value = accessor == null ? null : accessor.getMember(item);
        if (value instanceof IQuantity) {
            return Double.toString(((IQuantity) value).doubleValue());
        }
        return value == null ? "" : value.toString();
    }

    static String text(IMCStackTrace stack) {
        StringBuilder text = new StringBuilder();
        text.append(stack.getTruncationState().isTruncated() ? "1" : "0").append('\t');
        for (IMCFrame frame : stack.getFrames()) {
            IMCMethod method = frame.getMethod();
            IMCType type = method == null ? null : method.getType();
            Integer line = frame.getFrameLineNumber();
            text.append(type == null ? "" : type.getFullName()).append('\u0001')
                .append(method == null ? "" : method.getMethodName()).append('\u0001')
                .append(method == null ? "" : method.getFormalDescriptor()).append('\u0001')
                .append(line == null ? -1 : line).append('\u0001')
                .append(frame.getType()).append('\u0002');
        }
        return text.toString().replace("\n", " ");
    }
}
