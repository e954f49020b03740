import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Reads a topic without a group's state: pulls of each queue from its start. */
final class ReadBack {
    private static final int MOST = 32;
    private static final int TIMEOUT_MS = 20_000;

    private ReadBack() {
    }

    /** Polls until the topic is known and has at least count messages, or the time is over. */
    static List<MessageExt> all(DefaultMQPullConsumer consumer, String topic, int count) throws Exception {
        List<List<MessageExt>> last = new ArrayList<>(List.of(List.of()));
        Wait.until(() -> {
            last.set(0, once(consumer, topic));
            return last.get(0).size() >= count;
        });
        return last.get(0);
    }

    private static List<MessageExt> once(DefaultMQPullConsumer consumer, String topic) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        try {
            for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
                all.addAll(queue(consumer, queue));
            }
        } catch (MQClientException error) {
            return List.of(); // no route yet
        }
        return all;
    }

    private static List<MessageExt> queue(DefaultMQPullConsumer consumer, MessageQueue queue) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        PullResult result = consumer.pull(queue, "*", 0, MOST, TIMEOUT_MS);
        while (result.getPullStatus() == PullStatus.FOUND) {
            all.addAll(result.getMsgFoundList());
            result = consumer.pull(queue, "*", result.getNextBeginOffset(), MOST, TIMEOUT_MS);
        }
        return all;
    }
}
