import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** The messages that one consumer has received, in that order. Its monitor guards the list. */
final class Received {
    private final List<MessageExt> messages = new ArrayList<>();

    synchronized void add(List<MessageExt> more) {
        messages.addAll(more);
    }

    synchronized List<MessageExt> all() {
        return new ArrayList<>(messages);
    }

    synchronized int size() {
        return messages.size();
    }

    /** Waits until count messages are here, then for further ones that should not come. */
    List<MessageExt> await(int count) throws Exception {
        Wait.until(() -> size() >= count);
        Wait.quiet();
        return all();
    }

    MessageListenerConcurrently concurrently() {
        return (more, context) -> {
            add(more);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    MessageListenerOrderly orderly() {
        return (more, context) -> {
            add(more);
            return ConsumeOrderlyStatus.SUCCESS;
        };
    }

    static int distinct(List<MessageExt> messages) {
        return new HashSet<>(Seen.bodies(messages)).size();
    }

    /** Returns true if the messages of each queue came in the order of their offsets. */
    static boolean inOrder(List<MessageExt> messages) {
        Map<Integer, Long> last = new TreeMap<>();
        for (MessageExt message : messages) {
            Long before = last.put(message.getQueueId(), message.getQueueOffset());
            if (before != null && before >= message.getQueueOffset()) {
                return false;
            }
        }
        return true;
    }
}
