import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Forms of a message that a broker stores, and those that it refuses. */
final class SendForms {
    private static final int COMPRESSED_BYTES = 64 << 10;
    private static final int TOO_LARGE_BYTES = 5 << 20;

    private SendForms() {
    }

    static JSONObject compressed(Clients clients) throws Exception {
        byte[] body = new byte[COMPRESSED_BYTES];
        for (int index = 0; index < body.length; index++) {
            body[index] = (byte) (index / 100);
        }
        Message message = new Message(clients.topic, body);
        SendResult result = clients.producer().send(message);
        MessageExt read = clients.readBack(1).get(0);
        return new JSONObject()
            .fluentPut("status", result.getSendStatus().name())
            .fluentPut("equal", Arrays.equals(body, read.getBody()))
            .fluentPut("stored_smaller", read.getStoreSize() < COMPRESSED_BYTES);
    }

    static JSONObject properties(Clients clients) throws Exception {
        Message message = new Message(clients.topic, new byte[] {0, 1, 2, -1, -2});
        message.setTags("TagA");
        message.setKeys(List.of("key-1", "key-2"));
        message.putUserProperty("colour", "red");
        message.putUserProperty("Größe", "Straße 漢字");
        message.setFlag(7);
        SendResult result = clients.producer().send(message);
        MessageExt read = clients.readBack(1).get(0);
        return new JSONObject()
            .fluentPut("status", result.getSendStatus().name())
            .fluentPut("body", read.getBody())
            .fluentPut("tags", read.getTags())
            .fluentPut("keys", read.getKeys())
            .fluentPut("colour", read.getUserProperty("colour"))
            .fluentPut("size", read.getUserProperty("Größe"))
            .fluentPut("flag", read.getFlag())
            .fluentPut("reconsume_times", read.getReconsumeTimes())
            .fluentPut("message_id_kept", read.getMsgId().equals(result.getMsgId()))
            .fluentPut("born_host", read.getBornHostString())
            .fluentPut("born_before_stored", read.getBornTimestamp() <= read.getStoreTimestamp());
    }

    static JSONObject tooLarge(Clients clients) throws Exception {
        byte[] body = new byte[TOO_LARGE_BYTES];
        new Random(1).nextBytes(body);
        DefaultMQProducer producer = clients.producer();
        producer.setMaxMessageSize(2 * TOO_LARGE_BYTES);
        JSONObject seen = Seen.error(() -> producer.send(new Message(clients.topic, body)));
        return seen.fluentPut("next_send", clients.send(0, 1).get(0).getSendStatus().name());
    }

    static JSONObject queueOutOfRange(Clients clients) throws Exception {
        MessageQueue first = clients.publishQueues().get(0);
        MessageQueue outside = new MessageQueue(clients.topic, first.getBrokerName(), 99);
        JSONObject seen = Seen.error(() -> clients.producer().send(clients.message(0), outside));
        return seen.fluentPut("next_send", clients.send(0, 1).get(0).getSendStatus().name());
    }

    static JSONObject unknownTopic(Clients clients) throws Exception {
        Message message = new Message(clients.topic + "_unknown", new byte[] {1});
        return Seen.error(() -> clients.producer().send(message))
            .fluentPut("next_send", clients.send(0, 1).get(0).getSendStatus().name());
    }

    static JSONObject transaction(Clients clients) throws Exception {
        List<String> executed = new ArrayList<>();
        TransactionMQProducer producer = new TransactionMQProducer(clients.group + "_transactions", Clients.hook());
        producer.setInstanceName(clients.nextInstance());
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                executed.add(message.getTransactionId());
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        clients.onClose(producer::shutdown);
        return Seen.error(() -> producer.sendMessageInTransaction(clients.message(0), null))
            .fluentPut("local_transactions", executed.size());
    }
}
