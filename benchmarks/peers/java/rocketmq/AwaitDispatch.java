import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Waits until the broker has dispatched its whole log; returns the log's bytes and the messages in queues. Settings:
 * broker, topic, topics.
 */
public final class AwaitDispatch {
    private static final long POLL_MS = 50;

    public static void main(String[] arguments) {
        Program.run(AwaitDispatch::await);
    }

    private static Answer await() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(Settings.text("server"));
        admin.start();
        Map<String, String> facts = admin.fetchBrokerRuntimeStats(Settings.text("broker")).getTable();
        while (Long.parseLong(facts.get("dispatchBehindBytes")) > 0) {
            Thread.sleep(POLL_MS);
            facts = admin.fetchBrokerRuntimeStats(Settings.text("broker")).getTable();
        }
        DefaultMQPullConsumer consumer = Clients.consumer();
        long messages = 0;
        for (String topic : Clients.topics()) {
            for (MessageQueue queue : Clients.queues(consumer, topic)) {
                messages += consumer.maxOffset(queue) - consumer.minOffset(queue);
            }
        }
        return new Answer()
            .put("log_bytes", Long.parseLong(facts.get("commitLogMaxOffset")))
            .put("messages", messages);
    }
}
