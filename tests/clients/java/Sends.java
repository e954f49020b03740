import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The ways to send. */
final class Sends {
    private static final int COUNT = 12;
    private static final long LEVEL_1_MS = 1_000;

    private Sends() {
    }

    static JSONObject sync(Clients clients) throws Exception {
        List<SendResult> results = clients.send(0, COUNT);
        return Seen.results(results).fluentPut("read", Seen.sortedBodies(clients.readBack(COUNT)));
    }

    static JSONObject async(Clients clients) throws Exception {
        List<SendResult> results = Collections.synchronizedList(new ArrayList<>());
        List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch answers = new CountDownLatch(COUNT);
        clients.publishQueues(); // the route is known, so that the first sends do not all request it
        for (int number = 0; number < COUNT; number++) {
            clients.producer().send(clients.message(number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    results.add(result);
                    answers.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    errors.add(error);
                    answers.countDown();
                }
            });
        }
        boolean answered = answers.await(Clients.SEND_TIMEOUT_MS, TimeUnit.MILLISECONDS);
        return Seen.results(results)
            .fluentPut("answered", answered)
            .fluentPut("errors", errors.size())
            .fluentPut("read", Seen.sortedBodies(clients.readBack(COUNT)));
    }

    static JSONObject oneway(Clients clients) throws Exception {
        for (int number = 0; number < COUNT; number++) {
            clients.producer().sendOneway(clients.message(number));
        }
        return new JSONObject().fluentPut("read", Seen.sortedBodies(clients.readBack(COUNT)));
    }

    static JSONObject toQueue(Clients clients) throws Exception {
        List<SendResult> results = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            results.add(clients.producer().send(clients.message(number), (queues, message, id) -> queues.stream()
                .filter(queue -> queue.getQueueId() == (int) id).findFirst().orElseThrow(), 2));
        }
        return Seen.results(results).fluentPut("read_in_order", Seen.bodies(clients.readBack(COUNT)));
    }

    static JSONObject byKey(Clients clients) throws Exception {
        List<SendResult> results = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            Message message = clients.message(number);
            message.setTags("order-" + number % 3);
            results.add(clients.producer().send(message, new SelectMessageQueueByHash(), message.getTags()));
        }
        List<MessageExt> read = clients.readBack(COUNT);
        Map<String, Set<Integer>> queues = new TreeMap<>();
        Map<String, List<String>> bodies = new TreeMap<>();
        for (MessageExt message : read) {
            queues.computeIfAbsent(message.getTags(), key -> new TreeSet<>()).add(message.getQueueId());
            bodies.computeIfAbsent(message.getTags(), key -> new ArrayList<>()).add(Seen.body(message));
        }
        JSONObject seen = Seen.results(results);
        seen.remove("queues"); // the hash function is the client's
        return seen
            .fluentPut("queues_by_key", queues.values().stream().map(Set::size).collect(Collectors.toList()))
            .fluentPut("bodies_by_key", bodies);
    }

    static JSONObject batch(Clients clients) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            Message message = clients.message(number);
            message.setTags("batch");
            message.putUserProperty("number", String.valueOf(number));
            messages.add(message);
        }
        SendResult result = clients.producer().send(messages);
        List<MessageExt> read = clients.readBack(COUNT);
        return new JSONObject()
            .fluentPut("status", result.getSendStatus().name())
            .fluentPut("first_offset", result.getQueueOffset())
            .fluentPut("message_ids", result.getMsgId().split(",").length)
            .fluentPut("offset_message_ids", result.getOffsetMsgId().split(",").length)
            .fluentPut("queues_read", read.stream().map(MessageExt::getQueueId).distinct().count())
            .fluentPut("read_in_order", Seen.bodies(read))
            .fluentPut("numbers_read", read.stream()
                .filter(each -> Integer.parseInt(each.getUserProperty("number")) == each.getQueueOffset()).count())
            .fluentPut("tags_read", read.stream().filter(each -> "batch".equals(each.getTags())).count());
    }

    static JSONObject delayed(Clients clients) throws Exception {
        Message message = clients.message(0);
        message.setDelayTimeLevel(1);
        message.putUserProperty("colour", "red");
        long sent = System.currentTimeMillis();
        SendResult result = clients.producer().send(message, clients.publishQueues().get(1));
        MessageExt read = clients.readBack(1).get(0);
        return new JSONObject()
            .fluentPut("status", result.getSendStatus().name())
            .fluentPut("delayed", System.currentTimeMillis() - sent >= LEVEL_1_MS)
            .fluentPut("topic_kept", read.getTopic().equals(clients.topic))
            .fluentPut("queue", read.getQueueId())
            .fluentPut("offset", read.getQueueOffset())
            .fluentPut("body", Seen.body(read))
            .fluentPut("colour", read.getUserProperty("colour"))
            .fluentPut("level", read.getDelayTimeLevel())
            .fluentPut("message_id_kept", read.getMsgId().equals(result.getMsgId()));
    }
}
