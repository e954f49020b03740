import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Makes clients of one topic and one group, each with a connection of its own, and shuts them down at the end.
 * CLIENTS_TOKEN: the security token that they send.
 */
final class Clients {
    static final int SEND_TIMEOUT_MS = 20_000;
    final String topic;
    final String group;
    private final Deque<Runnable> shutdowns = new ArrayDeque<>();
    private DefaultMQProducer producer;
    private int made;

    Clients(String topic, String group) {
        this.topic = topic;
        this.group = group;
    }

    /** Returns a name for the next instance; clients of equal names would share one connection and one client id. */
    String nextInstance() {
        return group + "-" + ProcessHandle.current().pid() + "-" + made++;
    }

    /** Returns what adds the security token to each request, or null. */
    static RPCHook hook() {
        String token = System.getenv("CLIENTS_TOKEN");
        return token == null ? null : new AclClientRPCHook(new SessionCredentials("tidemark", "unused", token));
    }

    void onClose(Runnable shutdown) {
        shutdowns.push(shutdown);
    }

    void close() {
        shutdowns.forEach(Runnable::run);
    }

    DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer(group + "_producer", hook());
            producer.setInstanceName(nextInstance());
            producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
            producer.start();
            onClose(producer::shutdown);
        }
        return producer;
    }

    Message message(int number) {
        return new Message(topic, String.format("m-%02d", number).getBytes(StandardCharsets.UTF_8));
    }

    /** Sends the messages first to last - 1, one after the other, to the queues in turn. */
    List<SendResult> send(int first, int last) throws Exception {
        List<SendResult> results = new ArrayList<>();
        for (int number = first; number < last; number++) {
            results.add(producer().send(message(number)));
        }
        return results;
    }

    /** Sends one message to each queue. Their numbers begin at first. */
    List<SendResult> sendToEachQueue(int first) throws Exception {
        List<SendResult> results = new ArrayList<>();
        for (MessageQueue queue : publishQueues()) {
            results.add(producer().send(message(first + results.size()), queue));
        }
        return results;
    }

    List<MessageQueue> publishQueues() throws Exception {
        List<MessageQueue> queues = new ArrayList<>(producer().fetchPublishMessageQueues(topic));
        queues.sort(null);
        return queues;
    }

    /** Returns a push consumer that is not started. It consumes one message a call, from the first one. */
    DefaultMQPushConsumer pushConsumer() {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, hook());
        consumer.setInstanceName(nextInstance());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        onClose(consumer::shutdown);
        return consumer;
    }

    DefaultLitePullConsumer litePullConsumer() {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group, hook());
        consumer.setInstanceName(nextInstance());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        onClose(consumer::shutdown);
        return consumer;
    }

    DefaultMQPullConsumer pullConsumer(String group) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group, hook());
        consumer.setInstanceName(nextInstance());
        consumer.start();
        onClose(consumer::shutdown);
        return consumer;
    }

    /** Returns all messages of the topic, in the order of queue and offset, after there are at least count of them. */
    List<MessageExt> readBack(int count) throws Exception {
        return readBack(topic, count);
    }

    List<MessageExt> readBack(String topic, int count) throws Exception {
        return ReadBack.all(pullConsumer(group + "_reader"), topic, count);
    }
}
