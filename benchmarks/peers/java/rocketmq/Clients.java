import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.MessageQueue;

/** Started clients of the name server in the setting `server`; each has a connection of its own. */
final class Clients {
    private static final int TIMEOUT_MS = 60_000;
    private static final long ROUTE_DEADLINE_NS = 60_000_000_000L;

    private Clients() {
    }

    static DefaultMQProducer producer(String name) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench_" + name);
        producer.setNamesrvAddr(Settings.text("server"));
        producer.setInstanceName(name);
        producer.setSendMsgTimeout(TIMEOUT_MS);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        return producer;
    }

    static DefaultMQPullConsumer consumer() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("bench_consumer");
        consumer.setNamesrvAddr(Settings.text("server"));
        consumer.setInstanceName("consumer");
        consumer.start();
        return consumer;
    }

    /** The topic in the setting `topic`; if `topics` is above 1, topic-0 and so on. */
    static List<String> topics() {
        List<String> names = new ArrayList<>();
        for (int number = 0; number < Settings.number("topics"); number++) {
            names.add(Settings.text("topic") + (Settings.number("topics") > 1 ? "-" + number : ""));
        }
        return names;
    }

    /** Returns the queues of *topic*, by id; waits until the name server knows the topic. */
    static List<MessageQueue> queues(DefaultMQProducer producer, String topic) throws Exception {
        return await(() -> producer.fetchPublishMessageQueues(topic));
    }

    static List<MessageQueue> queues(DefaultMQPullConsumer consumer, String topic) throws Exception {
        return await(() -> consumer.fetchSubscribeMessageQueues(topic));
    }

    private interface Route {
        Collection<MessageQueue> ask() throws MQClientException;
    }

    private static List<MessageQueue> await(Route route) throws Exception {
        long deadline = System.nanoTime() + ROUTE_DEADLINE_NS;
        while (true) {
            try {
                return new ArrayList<>(new TreeSet<>(route.ask()));
            } catch (MQClientException error) {
                if (System.nanoTime() > deadline) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    /** Throws unless the send was acknowledged: a flush timeout is not an acknowledgement. */
    static SendResult acknowledged(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(result.toString());
        }
        return result;
    }
}
