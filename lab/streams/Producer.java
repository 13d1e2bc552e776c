import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Sends JSON rows to a topic at a rate: java -cp JARS Producer.java ADDRESS TOPIC ROWS_PER_S SECONDS WAVE WAVE_S
 *
 * <p>The rate is a wave around its mean, WAVE of it up and down every WAVE_S seconds.  One row in ten is a duplicate.
 * Prints a line when the topic exists, and then the number of rows sent.
 */
public class Producer {
    private static final long EPOCH_MS = 1_767_225_600_000L;
    private static final long TICK_MS = 100;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        double rate = Double.parseDouble(arguments[2]), wave = Double.parseDouble(arguments[4]);
        long ticks = Math.round(Double.parseDouble(arguments[3]) * 1000 / TICK_MS);
        double waveMs = 1000 * Double.parseDouble(arguments[5]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("linger.ms", "50");
        settings.put("acks", "1");
        try (KafkaProducer<byte[], String> producer = new KafkaProducer<>(settings)) {
            producer.partitionsFor(topic);
            System.out.println("ready");
            long begin = System.currentTimeMillis(), number = 0;
            for (long tick = 0; tick < ticks; tick++) {
                long now = tick * TICK_MS;
                Thread.sleep(Math.max(begin + now - System.currentTimeMillis(), 0));
                double share = 1 + wave * Math.sin(2 * Math.PI * now / waveMs);
                long rows = Math.round(rate * TICK_MS / 1000 * share);
                for (long end = number + rows; number < end; number++) {
                    producer.send(new ProducerRecord<>(topic, row(number, EPOCH_MS + now)));
                }
            }
            producer.flush();
            System.out.println(number);
        }
    }

    private static String row(long number, long atMs) {
        long id = number - number % 10 / 9;
        return "{\"id\":" + id + ",\"at\":" + atMs / 1000.0 + ",\"user\":\"u" + number * 7919 % 100_000
                + "\",\"amount\":" + number % 1000 + ".25}";
    }
}
