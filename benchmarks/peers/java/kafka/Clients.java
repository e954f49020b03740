import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Clients of the node in the setting `server`, with the defaults of Kafka unless set otherwise. */
final class Clients {
    private static final String BUFFER_BYTES = String.valueOf(64 << 20);

    private Clients() {
    }

    /** batchBytes: the maximum size of a batch of a partition; lingerMs: how long a batch waits to be full. */
    static KafkaProducer<byte[], byte[]> producer(int batchBytes, int lingerMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Settings.text("server"));
        settings.put("acks", "all");
        settings.put("batch.size", String.valueOf(batchBytes));
        settings.put("linger.ms", String.valueOf(lingerMs));
        settings.put("buffer.memory", BUFFER_BYTES);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer() {
        return consumer(new Properties());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties settings) {
        settings.put("bootstrap.servers", Settings.text("server"));
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> partitions = new ArrayList<>();
        consumer.partitionsFor(topic).forEach(each -> partitions.add(new TopicPartition(topic, each.partition())));
        return partitions;
    }
}
