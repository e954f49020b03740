import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Batches from several producers, each to one queue, as fast as they are acknowledged. Settings: topic, producers,
 * in_flight (requests of a producer that wait for their answers), batch (messages), body (bytes), warm_s, measured_s.
 */
public final class Append {
    private static final String TOPIC = Settings.text("topic");
    private static final int BATCH = Settings.number("batch");

    public static void main(String[] arguments) {
        Program.run(Append::append);
    }

    private static Answer append() throws Exception {
        List<Callable<Long>> loops = new ArrayList<>();
        List<DefaultMQProducer> producers = new ArrayList<>();
        for (int number = 0; number < Settings.number("producers"); number++) {
            producers.add(Clients.producer("producer-" + number));
        }
        List<MessageQueue> queues = Clients.queues(producers.get(0), TOPIC);
        for (DefaultMQProducer producer : producers) {
            Clients.queues(producer, TOPIC);
        }
        Window window = new Window();
        for (int number = 0; number < producers.size(); number++) {
            DefaultMQProducer producer = producers.get(number);
            MessageQueue queue = queues.get(number % queues.size());
            for (int request = 0; request < Settings.number("in_flight"); request++) {
                loops.add(() -> appendUntilOver(producer, queue, window));
            }
        }
        long messages = Program.together(loops).stream().mapToLong(Long::longValue).sum();
        return new Answer().put("messages", messages).put("messages_per_s", messages / window.seconds());
    }

    private static long appendUntilOver(DefaultMQProducer producer, MessageQueue queue, Window window) throws Exception {
        byte[] body = new byte[Settings.number("body")];
        long messages = 0;
        while (!window.over()) {
            Clients.acknowledged(producer.send(batch(TOPIC, body, BATCH), queue));
            messages += window.counts() ? BATCH : 0;
        }
        return messages;
    }

    static List<Message> batch(String topic, byte[] body, int count) {
        List<Message> batch = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            batch.add(new Message(topic, body));
        }
        return batch;
    }
}
