import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Creates topics with this many queues each. Settings: broker, topic, topics, queues, type (SimpleCQ, BatchCQ). */
public final class CreateTopics {
    private static final int READ_AND_WRITE = 6;

    public static void main(String[] arguments) {
        Program.run(CreateTopics::create);
    }

    private static Answer create() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(Settings.text("server"));
        admin.start();
        for (String name : Clients.topics()) {
            TopicConfig config = new TopicConfig(
                name, Settings.number("queues"), Settings.number("queues"), READ_AND_WRITE, 0);
            config.setAttributes(new HashMap<>(Map.of("+queue.type", Settings.text("type"))));
            admin.createAndUpdateTopicConfig(Settings.text("broker"), config);
        }
        return new Answer().put("topics", Settings.number("topics"));
    }
}
