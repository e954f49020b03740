import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Polls a node that is not running yet until it answers with records. Prints a line when it begins and one with the
 * monotonic clock's time of the answer. Settings: topic (its partition 0).
 */
public final class FirstPull {
    private static final Duration WAIT = Duration.ofMillis(100);
    private static final long DEADLINE_NS = 600_000_000_000L;
    private static final int BACK_OFF_MS = 2;

    public static void main(String[] arguments) {
        Program.run(FirstPull::pull);
    }

    private static Answer pull() {
        Properties settings = new Properties();
        for (String name : List.of("reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms")) {
            settings.put(name, String.valueOf(BACK_OFF_MS));
        }
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer(settings);
        TopicPartition partition = new TopicPartition(Settings.text("topic"), 0);
        consumer.assign(List.of(partition));
        consumer.seek(partition, 0);
        Program.tell(new Answer().put("began_ns", System.nanoTime()));
        for (long deadline = System.nanoTime() + DEADLINE_NS; System.nanoTime() < deadline;) {
            if (!consumer.poll(WAIT).isEmpty()) {
                return new Answer().put("answered_ns", System.nanoTime());
            }
        }
        throw new IllegalStateException("no answer");
    }
}
