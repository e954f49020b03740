import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** One consumer of all partitions, from first to last record, repeatedly. Settings: topic, warm_s, measured_s. */
public final class Pull {
    private static final Duration WAIT = Duration.ofSeconds(10);

    public static void main(String[] arguments) {
        Program.run(Pull::pull);
    }

    private static Answer pull() {
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer();
        List<TopicPartition> partitions = Clients.partitions(consumer, Settings.text("topic"));
        consumer.assign(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        consumer.seekToBeginning(partitions);
        Window window = new Window();
        long messages = 0;
        long bytes = 0;
        while (!window.over()) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(WAIT);
            if (records.isEmpty()) {
                throw new IllegalStateException("nothing to pull");
            }
            boolean counts = window.counts();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                if (counts) {
                    messages++;
                    bytes += record.value().length;
                }
            }
            for (TopicPartition partition : records.partitions()) {
                if (consumer.position(partition) >= ends.get(partition)) {
                    consumer.seekToBeginning(List.of(partition));
                }
            }
        }
        return new Answer()
            .put("messages_per_s", messages / window.seconds())
            .put("mb_per_s", bytes / window.seconds() / 1e6);
    }
}
