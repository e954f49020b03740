import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Runs commands with Apache RocketMQ's own client: a command is one line of JSON on standard input; its answer is one
 * line on standard output: {"result": …}, or {"error": …} if the client threw. Arguments: name server, broker address.
 */
public final class RocketClient {
    private static final int SEND_TIMEOUT_MS = 60_000;
    private final String broker;
    private final DefaultMQProducer producer = new DefaultMQProducer("conformance_producer");
    private final TransactionMQProducer transactions = new TransactionMQProducer("conformance_transactions");
    private final DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("conformance_consumer");
    private final DefaultMQAdminExt admin = new DefaultMQAdminExt();
    private final Set<String> knownTopics = new HashSet<>();

    private RocketClient(String nameServer, String broker) throws Exception {
        this.broker = broker;
        for (DefaultMQProducer each : new DefaultMQProducer[] {producer, transactions}) {
            each.setNamesrvAddr(nameServer);
            each.setSendMsgTimeout(SEND_TIMEOUT_MS);
            each.setRetryTimesWhenSendFailed(0);
            each.setMaxMessageSize(4 << 20);
            each.setInstanceName(each.getProducerGroup());
        }
        transactions.setTransactionListener(new AsTold());
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("consumer");
        admin.setNamesrvAddr(nameServer);
        admin.setInstanceName("admin");
        producer.start();
        transactions.start();
        consumer.start();
        admin.start();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        RocketClient client = new RocketClient(arguments[0], arguments[1]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", client.run(JSON.parseObject(line)));
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            answers.println(answer);
        }
        System.exit(0);
    }

    private Object run(JSONObject told) throws Exception {
        String topic = told.getString("topic");
        if (told.getString("do").equals("create_topic")) {
            return createTopic(topic, told.getIntValue("queues"), told.getBooleanValue("batch"));
        }
        learnRoute(topic);
        switch (told.getString("do")) {
            case "send": return send(topic, told);
            case "queues": return queues(topic);
            case "pull": return pull(queue(told), told.getString("tags"), told.getLongValue("offset"), told.getIntValue("most"));
            case "offset_by_time": return offsetByTime(queue(told), told);
            case "query_key": return queryKey(topic, told.getString("key"), told.getIntValue("most"));
            case "view": return message(consumer.viewMessage(topic, told.getString("id")));
            default: throw new IllegalArgumentException(told.getString("do"));
        }
    }

    /** A caller that names a queue itself must first have requested the topic's route from the name server. */
    private void learnRoute(String topic) throws Exception {
        if (!knownTopics.contains(topic)) {
            producer.fetchPublishMessageQueues(topic);
            consumer.fetchSubscribeMessageQueues(topic);
            knownTopics.add(topic);
        }
    }

    private MessageQueue queue(JSONObject told) {
        return new MessageQueue(told.getString("topic"), told.getString("broker_name"), told.getIntValue("queue_id"));
    }

    private Object createTopic(String topic, int queues, boolean batch) throws Exception {
        TopicConfig config = new TopicConfig(topic, queues, queues, 6, 0);
        if (batch) {
            config.setAttributes(new HashMap<>(Collections.singletonMap("+queue.type", "BatchCQ")));
        }
        admin.createAndUpdateTopicConfig(broker, config);
        return topic;
    }

    // -- sending: kind single, batch (one request), oneway, transaction ---------------------------------------------

    private Object send(String topic, JSONObject told) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (Object each : told.getJSONArray("messages")) {
            messages.add(toSend(topic, (JSONObject) each));
        }
        switch (told.getString("kind")) {
            case "single": return sent(producer.send(messages.get(0), queue(told)));
            case "batch": return sent(producer.send(messages, queue(told)));
            case "oneway": producer.sendOneway(messages.get(0), queue(told)); return null;
            case "transaction":
                return sent(transactions.sendMessageInTransaction(messages.get(0), told.getBooleanValue("commit")));
            default: throw new IllegalArgumentException(told.getString("kind"));
        }
    }

    private static Message toSend(String topic, JSONObject told) {
        Message message = new Message(topic, told.getString("tag"), Base64.getDecoder().decode(told.getString("body")));
        JSONArray keys = told.getJSONArray("keys");
        if (keys != null && !keys.isEmpty()) {
            message.setKeys(keys.toList(String.class));
        }
        message.setFlag(told.getIntValue("flag"));
        if (told.getIntValue("delay_level") > 0) {
            message.setDelayTimeLevel(told.getIntValue("delay_level"));
        }
        JSONObject properties = told.getJSONObject("properties");
        if (properties != null) {
            properties.forEach((name, value) -> message.putUserProperty(name, (String) value));
        }
        return message;
    }

    private static Object sent(SendResult result) {
        JSONObject told = new JSONObject();
        told.put("status", result.getSendStatus().name());
        told.put("queue_id", result.getMessageQueue().getQueueId());
        told.put("queue_offset", result.getQueueOffset());
        told.put("message_id", result.getMsgId());
        told.put("offset_message_id", result.getOffsetMsgId());
        return told;
    }

    /** Commits or rolls back as the sender requested; an unanswered transaction is rolled back when the broker asks. */
    private static final class AsTold implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object commit) {
            return (Boolean) commit ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    // -- reading -----------------------------------------------------------------------------------------------------

    private Object queues(String topic) throws Exception {
        List<Object> all = new ArrayList<>();
        for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
            JSONObject told = new JSONObject();
            told.put("broker_name", queue.getBrokerName());
            told.put("queue_id", queue.getQueueId());
            told.put("min_offset", consumer.minOffset(queue));
            told.put("max_offset", consumer.maxOffset(queue));
            all.add(told);
        }
        return all;
    }

    private Object pull(MessageQueue queue, String tags, long offset, int most) throws Exception {
        PullResult result = consumer.pull(queue, tags, offset, most, SEND_TIMEOUT_MS);
        List<Object> messages = new ArrayList<>();
        if (result.getMsgFoundList() != null) {
            for (MessageExt each : result.getMsgFoundList()) {
                messages.add(message(each));
            }
        }
        JSONObject told = new JSONObject();
        told.put("status", result.getPullStatus().name());
        told.put("next_offset", result.getNextBeginOffset());
        told.put("min_offset", result.getMinOffset());
        told.put("max_offset", result.getMaxOffset());
        told.put("messages", messages);
        return told;
    }

    private Object offsetByTime(MessageQueue queue, JSONObject told) throws Exception {
        long time = told.getLongValue("time_ms");
        return BoundaryType.getType(told.getString("boundary")) == BoundaryType.UPPER
            ? admin.searchUpperBoundaryOffset(queue, time) : admin.searchLowerBoundaryOffset(queue, time);
    }

    private Object queryKey(String topic, String key, int most) throws Exception {
        TreeSet<Long> offsets = new TreeSet<>();
        try {
            QueryResult result = consumer.queryMessage(topic, key, most, 0, Long.MAX_VALUE);
            result.getMessageList().forEach(each -> offsets.add(each.getCommitLogOffset()));
        } catch (MQClientException error) {
            if (!String.valueOf(error.getErrorMessage()).contains("query message by key finished, but no message")) {
                throw error;
            }
        }
        return offsets;
    }

    private static Object message(MessageExt message) {
        Map<String, Object> told = new TreeMap<>();
        told.put("topic", message.getTopic());
        told.put("queue_id", message.getQueueId());
        told.put("queue_offset", message.getQueueOffset());
        told.put("physical_offset", message.getCommitLogOffset());
        told.put("store_size", message.getStoreSize());
        told.put("message_id", message.getMsgId());
        if (message instanceof MessageClientExt) {
            told.put("offset_message_id", ((MessageClientExt) message).getOffsetMsgId());
        }
        told.put("sys_flag", message.getSysFlag());
        told.put("flag", message.getFlag());
        told.put("body_crc", message.getBodyCRC());
        told.put("born_timestamp_ms", message.getBornTimestamp());
        told.put("store_timestamp_ms", message.getStoreTimestamp());
        told.put("born_host", address(message.getBornHost()));
        told.put("store_host", address(message.getStoreHost()));
        told.put("reconsume_times", message.getReconsumeTimes());
        told.put("prepared_transaction_offset", message.getPreparedTransactionOffset());
        told.put("properties", message.getProperties());
        told.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        return told;
    }

    private static String address(Object host) {
        return String.valueOf(host).replaceFirst("^/", "");
    }
}
