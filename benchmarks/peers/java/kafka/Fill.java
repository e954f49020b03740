import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends records to all partitions of a topic. Settings: topic, messages, queues (partitions), batch, body. */
public final class Fill {
    private static final int LINGER_MS = 5;

    public static void main(String[] arguments) {
        Program.run(Fill::fill);
    }

    private static Answer fill() throws Exception {
        String topic = Settings.text("topic");
        byte[] body = new byte[Settings.number("body")];
        AtomicReference<Exception> failed = new AtomicReference<>();
        int messages = Settings.number("messages");
        KafkaProducer<byte[], byte[]> producer = Clients.producer(Settings.number("batch") * body.length, LINGER_MS);
        for (int number = 0; number < messages && failed.get() == null; number++) {
            int partition = number % Settings.number("queues");
            producer.send(new ProducerRecord<>(topic, partition, null, body), (metadata, error) -> {
                if (error != null) {
                    failed.set(error);
                }
            });
        }
        producer.flush();
        if (failed.get() != null) {
            throw failed.get();
        }
        return new Answer().put("messages", messages);
    }
}
