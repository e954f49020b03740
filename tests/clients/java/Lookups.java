import com.alibaba.fastjson2.JSONObject;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages by key, by unique key, and by offset message id. */
final class Lookups {
    private static final int MOST = 32;

    private Lookups() {
    }

    static JSONObject run(Clients clients) throws Exception {
        SendResult last = null;
        for (int number = 0; number < 6; number++) {
            Message message = clients.message(number);
            message.setKeys(number % 2 == 0 ? "even shared" : "odd shared");
            last = clients.producer().send(message);
        }
        SendResult sent = last;
        clients.readBack(6);
        DefaultMQPullConsumer consumer = clients.pullConsumer(clients.group);
        Wait.until(() -> byKey(consumer, clients, "shared", MOST).size() >= 6);
        return new JSONObject()
            .fluentPut("even", Seen.sortedBodies(byKey(consumer, clients, "even", MOST)))
            .fluentPut("shared", Seen.sortedBodies(byKey(consumer, clients, "shared", MOST)))
            .fluentPut("most_2", byKey(consumer, clients, "shared", 2).size())
            .fluentPut("none", Seen.error(() -> consumer.queryMessage(clients.topic, "none", MOST, 0, Long.MAX_VALUE)))
            .fluentPut("old_times", Seen.error(() -> consumer.queryMessage(clients.topic, "even", MOST, 0, 1_000)))
            .fluentPut("by_unique_key", Seen.body(consumer.viewMessage(clients.topic, sent.getMsgId())))
            .fluentPut("by_offset_id", Seen.body(consumer.viewMessage(clients.topic, sent.getOffsetMsgId())));
    }

    private static List<MessageExt> byKey(DefaultMQPullConsumer consumer, Clients clients, String key, int most)
        throws Exception {
        try {
            return consumer.queryMessage(clients.topic, key, most, 0, Long.MAX_VALUE).getMessageList();
        } catch (MQClientException error) {
            return List.of(); // no message yet
        }
    }
}
