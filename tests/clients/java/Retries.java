import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Listeners that fail: further attempts, and dead letters after the last one. */
final class Retries {
    private static final int COUNT = 3;
    private static final int IN_ORDER = 5;
    private static final int MOST_RECONSUME_TIMES = 2;

    private Retries() {
    }

    static JSONObject once(Clients clients) throws Exception {
        Received received = new Received();
        start(clients, failing(received, 1));
        List<SendResult> sent = clients.send(0, COUNT);
        List<MessageExt> all = received.await(2 * COUNT);
        List<MessageExt> again = all.stream().filter(each -> each.getReconsumeTimes() > 0).collect(Collectors.toList());
        List<String> offsetIds = sent.stream().map(SendResult::getOffsetMsgId).collect(Collectors.toList());
        List<String> ids = sent.stream().map(SendResult::getMsgId).collect(Collectors.toList());
        return new JSONObject()
            .fluentPut("reconsume_times", reconsumeTimes(all))
            .fluentPut("topic_kept", all.stream().allMatch(each -> each.getTopic().equals(clients.topic)))
            .fluentPut("message_ids_kept", ids.containsAll(again.stream()
                .map(MessageExt::getMsgId).collect(Collectors.toList())))
            .fluentPut("origin_message_ids", offsetIds.containsAll(again.stream()
                .map(each -> each.getProperty(MessageConst.PROPERTY_ORIGIN_MESSAGE_ID)).collect(Collectors.toList())));
    }

    static JSONObject toDeadLetters(Clients clients) throws Exception {
        Received received = new Received();
        DefaultMQPushConsumer consumer = start(clients, failing(received, Integer.MAX_VALUE));
        clients.send(0, 1);
        List<MessageExt> all = received.await(1 + MOST_RECONSUME_TIMES);
        JSONObject seen = new JSONObject().fluentPut("reconsume_times", reconsumeTimes(all));
        deadLetters(clients, consumer, seen);
        return seen;
    }

    /** Consumes concurrently with failures: each goes back with the delay level 1. */
    private static DefaultMQPushConsumer start(Clients clients, MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.setMaxReconsumeTimes(MOST_RECONSUME_TIMES);
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener(listener);
        consumer.start();
        return consumer;
    }

    /** Fails the attempts of a message whose reconsume times are below limit. */
    private static MessageListenerConcurrently failing(Received received, int limit) {
        return (messages, context) -> {
            received.add(messages);
            context.setDelayLevelWhenNextConsume(1);
            return messages.get(0).getReconsumeTimes() < limit
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    static JSONObject orderlySuspend(Clients clients) throws Exception {
        return orderly(clients, 2, IN_ORDER + 2).deliveries;
    }

    static JSONObject orderlyToDeadLetters(Clients clients) throws Exception {
        Orderly orderly = orderly(clients, Integer.MAX_VALUE, IN_ORDER + MOST_RECONSUME_TIMES);
        deadLetters(clients, orderly.consumer, orderly.deliveries);
        return orderly.deliveries;
    }

    private static final class Orderly {
        DefaultMQPushConsumer consumer;
        JSONObject deliveries;
    }

    /** Consumes one queue in order; the first attempts of its first message suspend the queue. */
    private static Orderly orderly(Clients clients, int failures, int count) throws Exception {
        Orderly orderly = new Orderly();
        Received received = new Received();
        List<String> deliveries = Collections.synchronizedList(new ArrayList<>());
        orderly.consumer = clients.pushConsumer();
        orderly.consumer.setMaxReconsumeTimes(MOST_RECONSUME_TIMES);
        orderly.consumer.subscribe(clients.topic, "*");
        orderly.consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            MessageExt message = messages.get(0);
            deliveries.add(Seen.body(message) + " " + message.getReconsumeTimes());
            received.add(messages);
            context.setSuspendCurrentQueueTimeMillis(100);
            return Seen.body(message).equals("m-00") && message.getReconsumeTimes() < failures
                ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        MessageQueue queue = clients.publishQueues().get(0);
        for (int number = 0; number < IN_ORDER; number++) {
            clients.producer().send(clients.message(number), queue);
        }
        orderly.consumer.start();
        received.await(count);
        orderly.deliveries = new JSONObject().fluentPut("deliveries", deliveries);
        return orderly;
    }

    private static Map<String, List<Integer>> reconsumeTimes(List<MessageExt> messages) {
        Map<String, List<Integer>> times = new TreeMap<>();
        messages.forEach(each ->
            times.computeIfAbsent(Seen.body(each), body -> new ArrayList<>()).add(each.getReconsumeTimes()));
        return times;
    }

    private static void deadLetters(Clients clients, DefaultMQPushConsumer consumer, JSONObject seen) throws Exception {
        List<MessageExt> dead = clients.readBack(MixAll.getDLQTopic(clients.group), 1);
        seen.put("dead", Seen.bodies(dead));
        seen.put("dead_queues", dead.stream().map(MessageExt::getQueueId).collect(Collectors.toList()));
        seen.put("dead_retry_topic", dead.stream()
            .allMatch(each -> clients.topic.equals(each.getProperty(MessageConst.PROPERTY_RETRY_TOPIC))));
        seen.put("dead_reconsume_times", dead.stream().map(MessageExt::getReconsumeTimes).collect(Collectors.toList()));
        consumer.shutdown();
    }
}
