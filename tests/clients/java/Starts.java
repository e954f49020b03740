import com.alibaba.fastjson2.JSONObject;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** The position at which a group starts. */
final class Starts {
    private static final int OLD = 12;
    private static final int NEW = 8;

    private Starts() {
    }

    static JSONObject fromLast(Clients clients) throws Exception {
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        return new JSONObject().fluentPut("received", consumeNewAndOld(clients, consumer));
    }

    /** Starts at a time after the old messages; the setting has seconds. */
    static JSONObject fromTimestamp(Clients clients) throws Exception {
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        consumer.setConsumeTimestamp(UtilAll.timeMillisToHumanString3(System.currentTimeMillis() + 60_000));
        return new JSONObject().fluentPut("received", consumeNewAndOld(clients, consumer));
    }

    private static int consumeNewAndOld(Clients clients, DefaultMQPushConsumer consumer) throws Exception {
        clients.send(0, OLD);
        clients.readBack(OLD);
        Received received = new Received();
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener(received.concurrently());
        consumer.start();
        Thread.sleep(3_000); // the consumer has its queues
        clients.send(OLD, OLD + NEW);
        return received.await(OLD + NEW).size();
    }

    /** Stops a consumer and starts another one of its group. */
    static JSONObject again(Clients clients) throws Exception {
        clients.send(0, OLD);
        Received first = consume(clients, OLD);
        clients.send(OLD, OLD + NEW);
        Received second = consume(clients, NEW);
        return new JSONObject()
            .fluentPut("first", Seen.sortedBodies(first.all()))
            .fluentPut("second", Seen.sortedBodies(second.all()));
    }

    private static Received consume(Clients clients, int count) throws Exception {
        Received received = new Received();
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener(received.concurrently());
        consumer.start();
        received.await(count);
        consumer.shutdown();
        return received;
    }
}
