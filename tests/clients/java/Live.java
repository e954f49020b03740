import com.alibaba.fastjson2.JSONObject;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A producer and a consumer that go on while the test kills processes. */
final class Live {
    private static final int SEND_TIMEOUT_MS = 3_000;
    private static final int PAUSE_MS = 10;

    private Live() {
    }

    /** Sends one message after the other, and tells of each whether it was acknowledged. */
    static JSONObject send(Clients clients) throws Exception {
        DefaultMQProducer producer = clients.producer();
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        Thread input = inputEnds();
        int failed = 0;
        Scenarios.tell("started");
        for (int number = 0; input.isAlive(); number++) {
            String body = String.format("m-%06d", number);
            try {
                SendResult result = producer.send(new Message(clients.topic, body.getBytes(StandardCharsets.UTF_8)));
                Scenarios.tell(result.getSendStatus() + " " + body);
            } catch (Exception error) {
                failed++;
                System.err.println(body + " " + error);
            }
            Thread.sleep(PAUSE_MS);
        }
        return new JSONObject().fluentPut("failed", failed);
    }

    static JSONObject receive(Clients clients) throws Exception {
        return receive(clients, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    }

    static JSONObject receiveNew(Clients clients) throws Exception {
        return receive(clients, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
    }

    private static JSONObject receive(Clients clients, ConsumeFromWhere where) throws Exception {
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.setConsumeFromWhere(where);
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt each : messages) {
                Scenarios.tell("received " + each.getQueueId() + " " + Seen.body(each));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Scenarios.tell("started");
        inputEnds().join();
        return new JSONObject();
    }

    /** Returns a thread that ends with the standard input. */
    private static Thread inputEnds() {
        Thread reading = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { // nothing is written to it
                }
            } catch (IOException error) {
                error.printStackTrace();
            }
        });
        reading.setDaemon(true);
        reading.start();
        return reading;
    }
}
