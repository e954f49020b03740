import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Creates a topic with the cluster's replication factor. Settings: topic, queues (partitions), flush_messages (1: fsync before answers; 0: page cache). */
public final class CreateTopics {
    public static void main(String[] arguments) {
        Program.run(CreateTopics::create);
    }

    private static Answer create() throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Settings.text("server"));
        NewTopic topic = new NewTopic(Settings.text("topic"), Optional.of(Settings.number("queues")), Optional.empty());
        if (Settings.number("flush_messages") > 0) {
            topic.configs(Map.of("flush.messages", Settings.text("flush_messages")));
        }
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(topic)).all().get();
        }
        return new Answer().put("topics", 1);
    }
}
