import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Single messages from threads that share a producer, each waiting for its answer. Settings: topic, threads, body,
 * warm_s, measured_s.
 */
public final class Send {
    public static void main(String[] arguments) {
        Program.run(Send::send);
    }

    private static Answer send() throws Exception {
        DefaultMQProducer producer = Clients.producer("producer");
        List<MessageQueue> queues = Clients.queues(producer, Settings.text("topic"));
        Window window = new Window();
        Times times = new Times();
        List<Callable<Void>> loops = new ArrayList<>();
        for (int thread = 0; thread < Settings.number("threads"); thread++) {
            MessageQueue queue = queues.get(thread % queues.size());
            loops.add(() -> sendUntilOver(producer, queue, window, times));
        }
        Program.together(loops);
        return times.into(new Answer().put("messages_per_s", times.count() / window.seconds()));
    }

    private static Void sendUntilOver(DefaultMQProducer producer, MessageQueue queue, Window window, Times times)
            throws Exception {
        byte[] body = new byte[Settings.number("body")];
        while (!window.over()) {
            long sent = System.nanoTime();
            Clients.acknowledged(producer.send(new Message(queue.getTopic(), body), queue));
            if (window.counts()) {
                times.add(System.nanoTime() - sent);
            }
        }
        return null;
    }
}
