import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The old pull consumer: its program names queues and offsets itself. */
final class Pulls {
    private static final int COUNT = 10;
    private static final int QUEUE = 1;
    private static final int MOST = 32;

    private Pulls() {
    }

    static JSONObject pull(Clients clients) throws Exception {
        fill(clients);
        DefaultMQPullConsumer consumer = clients.pullConsumer(clients.group);
        TreeSet<MessageQueue> queues = new TreeSet<>(consumer.fetchSubscribeMessageQueues(clients.topic));
        MessageQueue queue = queue(consumer, clients);
        JSONObject seen = new JSONObject()
            .fluentPut("queues", queues.stream().map(MessageQueue::getQueueId).collect(Collectors.toList()))
            .fluentPut("all", form(consumer.pull(queue, "*", 0, MOST)))
            .fluentPut("most_3", form(consumer.pull(queue, "*", 4, 3)))
            .fluentPut("tag", form(consumer.pull(queue, "even", 0, MOST)))
            .fluentPut("no_match", form(consumer.pull(queue, "none", 0, MOST)))
            .fluentPut("at_end", form(consumer.pull(queue, "*", COUNT, MOST)))
            .fluentPut("after_end", form(consumer.pull(queue, "*", COUNT + 5, MOST)))
            .fluentPut("empty_queue", form(consumer.pull(queues.first(), "*", 0, MOST)))
            .fluentPut("empty_queue_at_3", form(consumer.pull(queues.first(), "*", 3, MOST)));
        CompletableFuture<PullResult> held = CompletableFuture.supplyAsync(() -> blocking(consumer, queue));
        Thread.sleep(1_000); // the pull is held
        seen.put("held", !held.isDone());
        clients.producer().send(clients.message(COUNT), clients.publishQueues().get(QUEUE));
        seen.put("woken", form(held.get()));
        MessageQueue outside = new MessageQueue(clients.topic, queue.getBrokerName(), 99);
        seen.put("queue_out_of_range", Seen.error(() -> consumer.pull(outside, "*", 0, MOST)));
        MessageQueue unknown = new MessageQueue(clients.topic + "_unknown", queue.getBrokerName(), 0);
        seen.put("unknown_topic", Seen.error(() -> consumer.pull(unknown, "*", 0, MOST)));
        return seen;
    }

    static JSONObject offsets(Clients clients) throws Exception {
        fill(clients);
        DefaultMQPullConsumer consumer = clients.pullConsumer(clients.group);
        MessageQueue queue = queue(consumer, clients);
        JSONObject seen = new JSONObject()
            .fluentPut("min", consumer.minOffset(queue))
            .fluentPut("max", consumer.maxOffset(queue))
            .fluentPut("before", consumer.fetchConsumeOffset(queue, true));
        consumer.updateConsumeOffset(queue, 4);
        consumer.getOffsetStore().persist(queue);
        seen.put("stored", Wait.until(() -> consumer.fetchConsumeOffset(queue, true) == 4));
        consumer.updateConsumeOffset(queue, 2); // back, as a program does that reads again
        consumer.getOffsetStore().persist(queue);
        seen.put("stored_back", Wait.until(() -> consumer.fetchConsumeOffset(queue, true) == 2));
        DefaultMQPullConsumer other = clients.pullConsumer(clients.group + "_other");
        seen.put("of_another_group", other.fetchConsumeOffset(queue, true));
        return seen;
    }

    static JSONObject searchOffset(Clients clients) throws Exception {
        fill(clients);
        DefaultMQPullConsumer consumer = clients.pullConsumer(clients.group);
        MessageQueue queue = queue(consumer, clients);
        List<Long> times = consumer.pull(queue, "*", 0, MOST).getMsgFoundList().stream()
            .map(MessageExt::getStoreTimestamp).collect(Collectors.toList());
        List<Long> exact = new ArrayList<>();
        List<Long> between = new ArrayList<>();
        for (long time : times) {
            exact.add(consumer.searchOffset(queue, time));
            between.add(consumer.searchOffset(queue, time + 1));
        }
        MessageQueue empty = new MessageQueue(clients.topic, queue.getBrokerName(), 0);
        return new JSONObject()
            .fluentPut("exact", exact)
            .fluentPut("between", between)
            .fluentPut("time_0", consumer.searchOffset(queue, 0))
            .fluentPut("future", consumer.searchOffset(queue, System.currentTimeMillis() + 60_000))
            .fluentPut("empty_queue", consumer.searchOffset(empty, times.get(0)))
            .fluentPut("first_time_is_earliest", times.get(0) == consumer.earliestMsgStoreTime(queue))
            .fluentPut("earliest_of_empty_queue", consumer.earliestMsgStoreTime(empty));
    }

    /** Fills one queue with messages of different store times. Every second one has the tag even. */
    private static void fill(Clients clients) throws Exception {
        for (int number = 0; number < COUNT; number++) {
            Message message = clients.message(number);
            message.setTags(number % 2 == 0 ? "even" : "odd");
            clients.producer().send(message, clients.publishQueues().get(QUEUE));
            Thread.sleep(20);
        }
        clients.readBack(COUNT);
    }

    private static MessageQueue queue(DefaultMQPullConsumer consumer, Clients clients) throws Exception {
        return consumer.fetchSubscribeMessageQueues(clients.topic).stream()
            .filter(each -> each.getQueueId() == QUEUE).findFirst().orElseThrow();
    }

    private static PullResult blocking(DefaultMQPullConsumer consumer, MessageQueue queue) {
        try {
            return consumer.pullBlockIfNotFound(queue, "*", COUNT, MOST);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static JSONObject form(PullResult result) {
        List<MessageExt> found = result.getMsgFoundList() == null ? List.of() : result.getMsgFoundList();
        return new JSONObject()
            .fluentPut("status", result.getPullStatus().name())
            .fluentPut("offsets", found.stream().map(MessageExt::getQueueOffset).collect(Collectors.toList()))
            .fluentPut("next", result.getNextBeginOffset())
            .fluentPut("min", result.getMinOffset())
            .fluentPut("max", result.getMaxOffset());
    }
}
