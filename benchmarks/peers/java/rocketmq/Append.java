import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Sends batches from several producers, each to a share of the queues in turn, as fast as they are acknowledged.
 * Settings: topic, topics, producers, in_flight (requests of a producer that wait for their answers), batch (messages),
 * body (bytes), warm_s, measured_s. Prints a line when it begins and one when it ends.
 */
public final class Append {
    private static final int BATCH = Settings.number("batch");

    public static void main(String[] arguments) {
        Program.run(Append::append);
    }

    private static Answer append() throws Exception {
        List<DefaultMQProducer> producers = new ArrayList<>();
        List<List<MessageQueue>> shares = new ArrayList<>();
        for (int number = 0; number < Settings.number("producers"); number++) {
            producers.add(Clients.producer("producer-" + number));
            shares.add(share(number, producers.get(number)));
        }
        Window window = new Window();
        Program.tell(new Answer().put("began_ns", System.nanoTime()));
        List<Callable<Long>> loops = new ArrayList<>();
        for (int number = 0; number < producers.size(); number++) {
            DefaultMQProducer producer = producers.get(number);
            List<MessageQueue> queues = shares.get(number);
            AtomicInteger next = new AtomicInteger();
            for (int request = 0; request < Settings.number("in_flight"); request++) {
                loops.add(() -> appendUntilOver(producer, queues, next, window));
            }
        }
        long messages = Program.together(loops).stream().mapToLong(Long::longValue).sum();
        return new Answer().put("messages", messages).put("messages_per_s", messages / window.seconds());
    }

    private static List<MessageQueue> share(int number, DefaultMQProducer producer) throws Exception {
        List<MessageQueue> mine = new ArrayList<>();
        for (String topic : Clients.topics()) {
            for (MessageQueue queue : Clients.queues(producer, topic)) {
                if (queue.getQueueId() % Settings.number("producers") == number) {
                    mine.add(queue);
                }
            }
        }
        return mine;
    }

    private static long appendUntilOver(DefaultMQProducer producer, List<MessageQueue> queues, AtomicInteger next,
            Window window) throws Exception {
        byte[] body = new byte[Settings.number("body")];
        long messages = 0;
        while (!window.over()) {
            MessageQueue queue = queues.get(next.getAndIncrement() % queues.size());
            Clients.acknowledged(producer.send(batch(queue.getTopic(), body, BATCH), queue));
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
