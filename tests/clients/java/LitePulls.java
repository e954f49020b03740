import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The lite pull consumer: subscription with a balance, and queues that the program assigns. */
final class LitePulls {
    private static final int OLD = 20;
    private static final int NEW = 8;
    private static final long POLL_MS = 500;

    private LitePulls() {
    }

    static JSONObject subscribe(Clients clients) throws Exception {
        clients.send(0, OLD);
        DefaultLitePullConsumer first = subscribed(clients);
        List<MessageExt> before = poll(first, OLD);
        first.commitSync();
        JSONObject seen = new JSONObject()
            .fluentPut("first", Seen.sortedBodies(before))
            .fluentPut("committed", committed(first, clients.topic));
        first.shutdown();
        clients.send(OLD, OLD + NEW);
        DefaultLitePullConsumer second = subscribed(clients);
        return seen.fluentPut("second", Seen.sortedBodies(poll(second, NEW)));
    }

    private static DefaultLitePullConsumer subscribed(Clients clients) throws Exception {
        DefaultLitePullConsumer consumer = clients.litePullConsumer();
        consumer.setAutoCommit(false);
        consumer.subscribe(clients.topic, "*");
        consumer.start();
        return consumer;
    }

    static JSONObject assign(Clients clients) throws Exception {
        clients.send(0, OLD);
        clients.readBack(OLD);
        DefaultLitePullConsumer consumer = clients.litePullConsumer();
        consumer.setAutoCommit(false);
        consumer.start();
        TreeSet<MessageQueue> queues = new TreeSet<>(consumer.fetchMessageQueues(clients.topic));
        consumer.assign(queues);
        List<String> all = Seen.sortedBodies(poll(consumer, OLD));
        for (MessageQueue queue : queues) {
            consumer.seek(queue, 3);
        }
        List<Long> afterSeek = offsets(poll(consumer, 8));
        for (MessageQueue queue : queues) {
            consumer.seekToBegin(queue);
        }
        int fromBegin = poll(consumer, OLD).size();
        for (MessageQueue queue : queues) {
            consumer.seekToEnd(queue);
        }
        clients.send(OLD, OLD + NEW);
        List<String> fromEnd = Seen.sortedBodies(poll(consumer, NEW));
        consumer.commitSync();
        MessageQueue first = queues.first();
        return new JSONObject()
            .fluentPut("queues", queues.stream().map(MessageQueue::getQueueId).collect(Collectors.toList()))
            .fluentPut("all", all)
            .fluentPut("offsets_after_seek", afterSeek)
            .fluentPut("from_begin", fromBegin)
            .fluentPut("from_end", fromEnd)
            .fluentPut("committed", committed(consumer, clients.topic))
            .fluentPut("offset_for_time_0", consumer.offsetForTimestamp(first, 0L))
            .fluentPut("offset_for_future", consumer.offsetForTimestamp(first, System.currentTimeMillis() + 60_000));
    }

    /** Polls until count messages are here, then for further ones that should not come. */
    private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        Wait.until(() -> {
            all.addAll(consumer.poll(POLL_MS));
            return all.size() >= count;
        });
        all.addAll(consumer.poll(POLL_MS));
        return all;
    }

    private static List<Long> offsets(List<MessageExt> messages) {
        return messages.stream()
            .sorted(Comparator.comparing(MessageExt::getQueueId).thenComparing(MessageExt::getQueueOffset))
            .map(MessageExt::getQueueOffset).collect(Collectors.toList());
    }

    private static Object committed(DefaultLitePullConsumer consumer, String topic) throws Exception {
        TreeMap<String, Long> committed = new TreeMap<>();
        for (MessageQueue queue : consumer.fetchMessageQueues(topic)) {
            committed.put(String.valueOf(queue.getQueueId()), consumer.committed(queue));
        }
        return committed;
    }
}
