import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Append → visible to a consumer that polls, on partition 0. Settings: topic, and OpenLoop's. */
public final class Visible {
    private static final int DEFAULT_BATCH_BYTES = 16_384;
    private static final Duration WAIT = Duration.ofSeconds(1);
    private static final AtomicReference<Exception> FAILED = new AtomicReference<>();

    public static void main(String[] arguments) {
        Program.run(Visible::measure);
    }

    private static Answer measure() throws Exception {
        String topic = Settings.text("topic");
        KafkaProducer<byte[], byte[]> producer = Clients.producer(DEFAULT_BATCH_BYTES, 0);
        producer.partitionsFor(topic);
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer();
        TopicPartition partition = new TopicPartition(topic, 0);
        consumer.assign(List.of(partition));
        consumer.seekToEnd(List.of(partition));
        consumer.position(partition);
        OpenLoop loop = new OpenLoop();
        new Thread(() -> poll(consumer, loop)).start();
        loop.send(body -> {
            rethrow();
            producer.send(new ProducerRecord<>(topic, 0, null, body), (metadata, error) -> {
                if (error != null) {
                    FAILED.set(error);
                }
            });
        });
        Answer answer = loop.answer();
        rethrow();
        return answer;
    }

    private static void poll(KafkaConsumer<byte[], byte[]> consumer, OpenLoop loop) {
        try {
            while (!loop.sawAll()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(WAIT)) {
                    loop.see(record.value());
                }
            }
        } catch (RuntimeException error) {
            FAILED.set(error);
        }
    }

    private static void rethrow() throws Exception {
        if (FAILED.get() != null) {
            throw FAILED.get();
        }
    }
}
