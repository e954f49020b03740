import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Append → visible to a consumer that pulls and waits (long poll), on queue 0. Settings: topic, and OpenLoop's. */
public final class Visible {
    private static final int MOST = 32;
    private static final AtomicReference<Throwable> FAILED = new AtomicReference<>();

    public static void main(String[] arguments) {
        Program.run(Visible::measure);
    }

    private static Answer measure() throws Exception {
        DefaultMQProducer producer = Clients.producer("producer");
        DefaultMQPullConsumer consumer = Clients.consumer();
        MessageQueue queue = Clients.queues(producer, Settings.text("topic")).get(0);
        Clients.queues(consumer, Settings.text("topic"));
        OpenLoop loop = new OpenLoop();
        long first = consumer.maxOffset(queue);
        new Thread(() -> pull(consumer, queue, first, loop)).start();
        loop.send(body -> {
            rethrow();
            producer.send(new Message(queue.getTopic(), body), queue, new Acknowledged());
        });
        Answer answer = loop.answer();
        rethrow();
        return answer;
    }

    private static void pull(DefaultMQPullConsumer consumer, MessageQueue queue, long first, OpenLoop loop) {
        try {
            for (long next = first; !loop.sawAll();) {
                PullResult result = consumer.pullBlockIfNotFound(queue, "*", next, MOST);
                if (result.getMsgFoundList() != null) {
                    for (MessageExt message : result.getMsgFoundList()) {
                        loop.see(message.getBody());
                    }
                }
                next = result.getNextBeginOffset();
            }
        } catch (Exception error) {
            FAILED.set(error);
        }
    }

    private static void rethrow() {
        if (FAILED.get() != null) {
            throw new IllegalStateException(FAILED.get());
        }
    }

    private static final class Acknowledged implements SendCallback {
        @Override
        public void onSuccess(SendResult result) {
            try {
                Clients.acknowledged(result);
            } catch (IllegalStateException error) {
                FAILED.set(error);
            }
        }

        @Override
        public void onException(Throwable error) {
            FAILED.set(error);
        }
    }
}
