import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Push consumers: one or two members without errors, and the subscriptions that a broker may refuse. */
final class Pushes {
    private static final int BEFORE = 40;
    private static final int ALL = 60;
    private static final long NOTHING_MS = 10_000;

    private Pushes() {
    }

    static JSONObject concurrent(Clients clients) throws Exception {
        return consume(clients, false);
    }

    static JSONObject orderly(Clients clients) throws Exception {
        return consume(clients, true);
    }

    /** Consumes messages that were sent before and after the start. */
    private static JSONObject consume(Clients clients, boolean orderly) throws Exception {
        Received received = new Received();
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.subscribe(clients.topic, "*");
        if (orderly) {
            consumer.registerMessageListener(received.orderly());
        } else {
            consumer.registerMessageListener(received.concurrently());
        }
        clients.send(0, BEFORE);
        consumer.start();
        Wait.until(() -> received.size() >= BEFORE);
        clients.send(BEFORE, ALL);
        List<MessageExt> all = received.await(ALL);
        JSONObject seen = new JSONObject()
            .fluentPut("received", all.size())
            .fluentPut("distinct", Received.distinct(all));
        return orderly ? seen.fluentPut("in_order", Received.inOrder(all)) : seen;
    }

    static JSONObject broadcast(Clients clients) throws Exception {
        List<Received> members = new ArrayList<>();
        for (int member = 0; member < 2; member++) {
            Received received = new Received();
            DefaultMQPushConsumer consumer = clients.pushConsumer();
            consumer.setMessageModel(MessageModel.BROADCASTING);
            consumer.subscribe(clients.topic, "*");
            consumer.registerMessageListener(received.concurrently());
            consumer.start();
            members.add(received);
        }
        clients.send(0, ALL);
        JSONObject seen = new JSONObject();
        List<Integer> counts = new ArrayList<>();
        List<Integer> distinct = new ArrayList<>();
        for (Received member : members) {
            counts.add(member.await(ALL).size());
            distinct.add(Received.distinct(member.all()));
        }
        return seen.fluentPut("received", counts).fluentPut("distinct", distinct);
    }

    static JSONObject tags(Clients clients) throws Exception {
        String[] tags = {"A", "B", "C", null};
        for (int number = 0; number < BEFORE; number++) {
            Message message = clients.message(number);
            if (tags[number % tags.length] != null) {
                message.setTags(tags[number % tags.length]);
            }
            clients.producer().send(message, clients.publishQueues().get(number / tags.length % 2));
        }
        Received received = new Received();
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.subscribe(clients.topic, "A || B");
        consumer.registerMessageListener(received.concurrently());
        consumer.start();
        Map<String, Integer> counts = new TreeMap<>();
        received.await(BEFORE / 2).forEach(each -> counts.merge(String.valueOf(each.getTags()), 1, Integer::sum));
        return new JSONObject().fluentPut("received", counts);
    }

    static JSONObject sql92(Clients clients) throws Exception {
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.subscribe(clients.topic, MessageSelector.bySql("colour = 'red'"));
        consumer.registerMessageListener(new Received().concurrently());
        return Seen.error(() -> {
            consumer.start();
            return null;
        });
    }

    static JSONObject pop(Clients clients) throws Exception {
        Received received = new Received();
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.setClientRebalance(false);
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener(received.concurrently());
        clients.send(0, BEFORE);
        JSONObject seen = Seen.error(() -> {
            consumer.start();
            return null;
        });
        Thread.sleep(NOTHING_MS);
        return seen.fluentPut("received", received.size());
    }
}
