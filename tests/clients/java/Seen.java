import com.alibaba.fastjson2.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;

/** Forms observations that do not differ between systems: no times, no ids, no addresses. */
final class Seen {
    private Seen() {
    }

    static String body(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static List<String> bodies(List<MessageExt> messages) {
        return messages.stream().map(Seen::body).collect(Collectors.toList());
    }

    static List<String> sortedBodies(List<MessageExt> messages) {
        return messages.stream().map(Seen::body).sorted().collect(Collectors.toList());
    }

    /** Returns the facts of sends that succeeded. */
    static JSONObject results(List<SendResult> results) {
        Map<Integer, List<Long>> offsets = new TreeMap<>();
        for (SendResult result : results) {
            offsets.computeIfAbsent(result.getMessageQueue().getQueueId(), id -> new ArrayList<>())
                .add(result.getQueueOffset());
        }
        return new JSONObject()
            .fluentPut("sent", results.size())
            .fluentPut("statuses", results.stream()
                .map(each -> each.getSendStatus().name()).collect(Collectors.toCollection(TreeSet::new)))
            .fluentPut("queues", offsets.keySet())
            .fluentPut("offsets_dense", offsets.values().stream().allMatch(Seen::dense))
            .fluentPut("message_ids", distinct(results, SendResult::getMsgId))
            .fluentPut("offset_message_ids", distinct(results, SendResult::getOffsetMsgId))
            .fluentPut("transaction_id_is_message_id",
                results.stream().allMatch(each -> each.getMsgId().equals(each.getTransactionId())));
    }

    private static int distinct(List<SendResult> results, Function<SendResult, String> id) {
        return results.stream().map(id).collect(Collectors.toSet()).size();
    }

    /** Returns true if the offsets are 0, 1, 2 and so on. */
    static boolean dense(List<Long> offsets) {
        List<Long> sorted = offsets.stream().sorted().collect(Collectors.toList());
        for (int index = 0; index < sorted.size(); index++) {
            if (sorted.get(index) != index) {
                return false;
            }
        }
        return true;
    }

    /** Returns the class of the call's error, its response code and its cause's; an empty object without an error. */
    static JSONObject error(Callable<?> call) {
        JSONObject seen = new JSONObject();
        try {
            call.call();
            return seen;
        } catch (Exception error) {
            seen.put("error_class", error.getClass().getSimpleName());
            putCode(seen, "response_code", error);
            putCode(seen, "cause_code", error.getCause());
            System.err.println(error);
            return seen;
        }
    }

    private static void putCode(JSONObject seen, String name, Throwable error) {
        if (error instanceof MQBrokerException) {
            seen.put(name, ((MQBrokerException) error).getResponseCode());
        } else if (error instanceof MQClientException) {
            seen.put(name, ((MQClientException) error).getResponseCode());
        }
    }
}
