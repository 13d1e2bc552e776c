import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;
import org.apache.flink.streaming.api.functions.sink.RichSinkFunction;
import org.apache.flink.util.Collector;

/**
 * The lab's streams, one by name: ads (the Yahoo benchmark with a generator and an in-memory join), words (Dhalion's word
 * count), rocks, skew, async and restart (ads with one thing different).
 *
 * <p>Every record carries when its source made it, and each sink writes a histogram of their ages, a line a second.
 */
public class FlinkStreams {
    private static final Map<String, String> GIVEN = new HashMap<>();

    private static int number(String key, int otherwise) {
        return Integer.parseInt(GIVEN.getOrDefault(key, String.valueOf(otherwise)));
    }

    public static void main(String[] arguments) throws Exception {
        for (String each : arguments) {
            String[] parts = each.split("=", 2);
            GIVEN.put(parts[0], parts[1]);
        }
        String workload = GIVEN.get("workload");
        int rate = number("rate", 0);
        long count = number("count", 0);
        int parallelism = number("parallelism", 2);
        Configuration configuration = new Configuration();
        configuration.setString("execution.target", "remote");
        configuration.setString("execution.attached", "true");
        configuration.setString("rest.address", GIVEN.get("host"));
        configuration.setString("rest.port", GIVEN.get("port"));
        configuration.setString("client.timeout", "180 s");
        configuration.setString("parallelism.default", String.valueOf(parallelism));
        configuration.setString("pipeline.name", workload);
        configuration.setString("metrics.latency.interval", GIVEN.getOrDefault("markers", "0") + " ms");
        configuration.setString("state.backend.type", workload.equals("rocks") ? "rocksdb" : "hashmap");
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "3");
        configuration.setString("restart-strategy.fixed-delay.delay", "1 s");
        StreamExecutionEnvironment env = new StreamExecutionEnvironment(configuration);
        if (number("chaining", 1) == 0) {
            env.disableOperatorChaining();
        }
        if (number("checkpoint", 0) > 0) {
            env.enableCheckpointing(number("checkpoint", 0));
        }
        Generator generator = new Generator(workload);
        RateLimiterStrategy limit = rate == 0 ? RateLimiterStrategy.noOp() : each -> new Ticks((double) rate / each);
        SingleOutputStreamOperator<Tuple2<String, Long>> source =
                env.fromSource(
                        new DataGeneratorSource<>(generator, count, limit, Types.TUPLE(Types.STRING, Types.LONG)),
                        WatermarkStrategy.noWatermarks(),
                        "Events");
        // An operator behind a rebalance has separate threads, unlike an operator that only forwards.
        SingleOutputStreamOperator<Tuple3<String, Long, Long>> parsed =
                source.rebalance()
                        .flatMap(workload.equals("words") ? new Split() : new Parse(number("work", 1)))
                        .returns(TypeInformation.of(new TypeHint<Tuple3<String, Long, Long>>() {}))
                        .setParallelism(number("parse", parallelism))
                        .name(workload.equals("words") ? "Split" : "Parse");
        if (workload.equals("async")) {
            parsed =
                    AsyncDataStream.unorderedWait(parsed, new Lookup(), 10, TimeUnit.SECONDS, number("capacity", 200))
                            .name("Lookup");
        }
        parsed.keyBy(each -> each.f0)
                .process(new Count(number("work", 1), workload.equals("restart") ? number("fail", 15) : 0))
                .returns(TypeInformation.of(new TypeHint<Tuple3<String, Long, Long>>() {}))
                .name("Count")
                .addSink(new Ages(GIVEN.get("out")))
                .name("Ages");
        env.execute(workload);
    }

    /** A rate limit: the number of permits grows with time; waits five milliseconds at a time. */
    private static class Ticks implements RateLimiter {
        private static final CompletionStage<Void> NOW = CompletableFuture.completedFuture(null);
        private static final ScheduledExecutorService CLOCK = Executors.newSingleThreadScheduledExecutor(
                work -> {
                    Thread thread = new Thread(work, "lab clock");
                    thread.setDaemon(true);
                    return thread;
                });
        private final double perNano;
        private long start = 0;
        private long taken = 0;

        Ticks(double perSecond) {
            perNano = perSecond / 1e9;
        }

        // Flink 1 requests one permit at a time, Flink 2.3 several: each has only its own method.
        public CompletionStage<Void> acquire() {
            return acquire(1);
        }

        public CompletionStage<Void> acquire(int permits) {
            if (start == 0) {
                start = System.nanoTime();
            }
            taken += permits;
            if (taken <= (System.nanoTime() - start) * perNano) {
                return NOW;
            }
            CompletableFuture<Void> later = new CompletableFuture<>();
            CLOCK.schedule(() -> later.complete(null), 5, TimeUnit.MILLISECONDS);
            return later;
        }
    }

    private static class Generator implements GeneratorFunction<Long, Tuple2<String, Long>> {
        private static final String[] TYPES = {"view", "click", "purchase"};
        private static final String[] WORDS = "the quick brown fox jumps over a lazy dog while seven wizards box".split(" ");
        private final String workload;

        Generator(String workload) {
            this.workload = workload;
        }

        @Override
        public Tuple2<String, Long> map(Long index) {
            long mixed = (index + 1) * 0x9E3779B97F4A7C15L;
            if (workload.equals("words")) {
                StringBuilder sentence = new StringBuilder();
                for (int each = 0; each < 8; each++) {
                    sentence.append(WORDS[(int) ((mixed >>> (each * 5)) & 31) % WORDS.length]).append(' ');
                }
                return Tuple2.of(sentence.toString(), System.nanoTime());
            }
            int keys = workload.equals("rocks") ? 100_000 : 1000;
            long ad = (mixed >>> 20) % keys;
            if (workload.equals("skew") && (mixed >>> 50) % 10 < 6) {
                ad = 7;
            }
            String text =
                    "{\"user_id\":\"" + (mixed >>> 12) + "\",\"page_id\":\"" + (mixed >>> 30) + "\",\"ad_id\":" + ad
                            + ",\"ad_type\":\"banner\",\"event_type\":\"" + TYPES[(int) ((mixed >>> 40) % 3)]
                            + "\",\"event_time\":" + index + ",\"ip_address\":\"10.0.0.1\"}";
            return Tuple2.of(text, System.nanoTime());
        }
    }

    private static class Split extends RichFlatMapFunction<Tuple2<String, Long>, Tuple3<String, Long, Long>> {
        @Override
        public void flatMap(Tuple2<String, Long> sentence, Collector<Tuple3<String, Long, Long>> out) {
            for (String word : sentence.f0.split(" ")) {
                out.collect(Tuple3.of(word, sentence.f1, 1L));
            }
        }
    }

    /** Parses an event, filters views, and looks up the campaign of its ad in memory. */
    private static class Parse extends RichFlatMapFunction<Tuple2<String, Long>, Tuple3<String, Long, Long>> {
        private final int work;
        private transient ObjectMapper mapper;
        private transient Map<Integer, String> campaigns;

        Parse(int work) {
            this.work = work;
        }

        @Override
        public void open(OpenContext context) {
            mapper = new ObjectMapper();
            campaigns = new HashMap<>();
            for (int ad = 0; ad < 100_000; ad++) {
                campaigns.put(ad, "campaign-" + (ad < 1000 ? ad / 10 : ad));
            }
        }

        @Override
        public void flatMap(Tuple2<String, Long> event, Collector<Tuple3<String, Long, Long>> out) throws IOException {
            JsonNode node = null;
            for (int each = 0; each < work; each++) {
                node = mapper.readTree(event.f0);
            }
            if (node.get("event_type").asText().equals("view")) {
                out.collect(Tuple3.of(campaigns.get(node.get("ad_id").asInt()), event.f1, 1L));
            }
        }
    }

    /** A service that answers in 5 ms under any load. */
    private static class Lookup extends RichAsyncFunction<Tuple3<String, Long, Long>, Tuple3<String, Long, Long>> {
        private transient ScheduledExecutorService service;

        @Override
        public void open(OpenContext context) {
            service = Executors.newScheduledThreadPool(1, work -> new Thread(work, "lab service"));
        }

        @Override
        public void asyncInvoke(Tuple3<String, Long, Long> record, ResultFuture<Tuple3<String, Long, Long>> result) {
            service.schedule(() -> result.complete(Collections.singleton(record)), 5, TimeUnit.MILLISECONDS);
        }

        @Override
        public void close() {
            if (service != null) {
                service.shutdownNow();
            }
        }
    }

    /** Counts by key, and emits each new count. */
    private static class Count
            extends KeyedProcessFunction<String, Tuple3<String, Long, Long>, Tuple3<String, Long, Long>> {
        private final int work;
        private final int failAfterS;
        private transient ValueState<Long> counts;
        private transient long openedNs;

        Count(int work, int failAfterS) {
            this.work = work;
            this.failAfterS = failAfterS;
        }

        @Override
        public void open(OpenContext context) {
            counts = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            openedNs = System.nanoTime();
        }

        @Override
        public void processElement(
                Tuple3<String, Long, Long> one, Context context, Collector<Tuple3<String, Long, Long>> out)
                throws IOException {
            Long count = null;
            for (int each = 0; each < work; each++) {
                Long before = counts.value();
                count = before == null ? 1L : before + 1;
                counts.update(count);
            }
            if (failAfterS > 0
                    && getRuntimeContext().getTaskInfo().getAttemptNumber() == 0
                    && System.nanoTime() - openedNs > failAfterS * 1_000_000_000L) {
                throw new IllegalStateException("the failure that the lab asked for");
            }
            out.collect(Tuple3.of(one.f0, one.f1, count));
        }
    }

    /** Ages of records in buckets of a tenth of a binary order, by second: second,count,sum_us,bucket:count … */
    private static class Ages extends RichSinkFunction<Tuple3<String, Long, Long>> {
        private static final int BUCKETS = 400;
        private final String out;
        private transient long[] buckets;
        private transient long second;
        private transient long count;
        private transient double sumUs;
        private transient Path file;

        Ages(String out) {
            this.out = out;
        }

        @Override
        public void open(OpenContext context) {
            buckets = new long[BUCKETS];
            int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            file = Path.of(out, "ages-" + subtask + ".csv");
        }

        @Override
        public void invoke(Tuple3<String, Long, Long> record, Context context) throws IOException {
            long now = System.currentTimeMillis() / 1000;
            if (now != second) {
                write();
                second = now;
            }
            double us = (System.nanoTime() - record.f1) / 1e3;
            count++;
            sumUs += us;
            int bucket = (int) (10 * Math.log(Math.max(us, 1.0)) / Math.log(2.0));
            buckets[Math.min(bucket, BUCKETS - 1)]++;
        }

        private void write() throws IOException {
            if (count > 0) {
                StringBuilder line = new StringBuilder();
                line.append(second).append(',').append(count).append(',').append(Math.round(sumUs));
                for (int each = 0; each < BUCKETS; each++) {
                    if (buckets[each] > 0) {
                        line.append(',').append(each).append(':').append(buckets[each]);
                        buckets[each] = 0;
                    }
                }
                line.append('\n');
                Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
            count = 0;
            sumUs = 0;
        }

        @Override
        public void close() throws IOException {
            write();
        }
    }
}
