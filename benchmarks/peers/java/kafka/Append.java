import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Sends records from several producers, each to one partition, in batches as close to *batch* records as Kafka makes
 * them, as fast as they are acknowledged. Settings: topic, producers, queues, batch, body (bytes), warm_s, measured_s.
 * Prints a line when it begins and one when it ends.
 */
public final class Append {
    private static final int RECORD_OVERHEAD_BYTES = 12;
    private static final int BATCH_OVERHEAD_BYTES = 61;
    private static final int LINGER_MS = 5;
    private static final LongAdder MESSAGES = new LongAdder();
    private static final AtomicReference<Exception> FAILED = new AtomicReference<>();

    public static void main(String[] arguments) {
        Program.run(Append::append);
    }

    private static Answer append() throws Exception {
        int body = Settings.number("body");
        int batchBytes = Settings.number("batch") * (body + RECORD_OVERHEAD_BYTES) + BATCH_OVERHEAD_BYTES;
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int number = 0; number < Settings.number("producers"); number++) {
            producers.add(Clients.producer(batchBytes, LINGER_MS));
            producers.get(number).partitionsFor(Settings.text("topic"));
        }
        Window window = new Window();
        Program.tell(new Answer().put("began_ns", System.nanoTime()));
        List<Callable<Void>> loops = new ArrayList<>();
        for (int number = 0; number < producers.size(); number++) {
            KafkaProducer<byte[], byte[]> producer = producers.get(number);
            int partition = number % Settings.number("queues");
            loops.add(() -> appendUntilOver(producer, partition, body, window));
        }
        Program.together(loops);
        if (FAILED.get() != null) {
            throw FAILED.get();
        }
        return new Answer().put("messages", MESSAGES.sum())
            .put("messages_per_s", MESSAGES.sum() / window.seconds())
            .put("batch", metric(producers.get(0), "records-per-request-avg"));
    }

    private static Void appendUntilOver(KafkaProducer<byte[], byte[]> producer, int partition, int body,
            Window window) {
        String topic = Settings.text("topic");
        byte[] value = new byte[body];
        while (!window.over() && FAILED.get() == null) {
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                if (error != null) {
                    FAILED.set(error);
                } else if (window.counts()) {
                    MESSAGES.increment();
                }
            });
        }
        producer.flush();
        return null;
    }

    private static double metric(KafkaProducer<byte[], byte[]> producer, String name) {
        return producer.metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals(name) && entry.getKey().group().equals("producer-metrics"))
            .mapToDouble(entry -> (Double) entry.getValue().metricValue()).findFirst().getAsDouble();
    }
}
