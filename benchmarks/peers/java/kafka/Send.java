import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Single records from threads that share a producer, each waiting for its answer. Settings: topic, queues (partitions),
 * threads, body, warm_s, measured_s.
 */
public final class Send {
    private static final int DEFAULT_BATCH_BYTES = 16_384;

    public static void main(String[] arguments) {
        Program.run(Send::send);
    }

    private static Answer send() throws Exception {
        KafkaProducer<byte[], byte[]> producer = Clients.producer(DEFAULT_BATCH_BYTES, 0);
        producer.partitionsFor(Settings.text("topic"));
        Window window = new Window();
        Times times = new Times();
        List<Callable<Void>> loops = new ArrayList<>();
        for (int thread = 0; thread < Settings.number("threads"); thread++) {
            int partition = thread % Settings.number("queues");
            loops.add(() -> sendUntilOver(producer, partition, window, times));
        }
        Program.together(loops);
        return times.into(new Answer().put("messages_per_s", times.count() / window.seconds()));
    }

    private static Void sendUntilOver(KafkaProducer<byte[], byte[]> producer, int partition, Window window, Times times)
            throws Exception {
        String topic = Settings.text("topic");
        byte[] body = new byte[Settings.number("body")];
        while (!window.over()) {
            long sent = System.nanoTime();
            producer.send(new ProducerRecord<>(topic, partition, null, body)).get();
            if (window.counts()) {
                times.add(System.nanoTime() - sent);
            }
        }
        return null;
    }
}
