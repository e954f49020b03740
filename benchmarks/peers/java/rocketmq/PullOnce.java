import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One consumer that pulls once from each of many queues, in random order, repeatedly. Settings: topic, topics, threads,
 * most (messages that a pull requests), warm_s, measured_s.
 */
public final class PullOnce {
    private static final long SEED = 6;

    public static void main(String[] arguments) {
        Program.run(PullOnce::pull);
    }

    private static Answer pull() throws Exception {
        DefaultMQPullConsumer consumer = Clients.consumer();
        List<MessageQueue> queues = new ArrayList<>();
        for (String topic : Clients.topics()) {
            queues.addAll(Clients.queues(consumer, topic));
        }
        Collections.shuffle(queues, new Random(SEED));
        Window window = new Window();
        AtomicInteger next = new AtomicInteger();
        LongAdder pulls = new LongAdder();
        LongAdder messages = new LongAdder();
        Callable<Void> loop = () -> {
            while (!window.over()) {
                MessageQueue queue = queues.get(next.getAndIncrement() % queues.size());
                PullResult result = consumer.pull(queue, "*", 0, Settings.number("most"));
                if (window.counts()) {
                    pulls.increment();
                    messages.add(result.getMsgFoundList().size());
                }
            }
            return null;
        };
        Program.together(Collections.nCopies(Settings.number("threads"), loop));
        return new Answer()
            .put("pulls_per_s", pulls.sum() / window.seconds())
            .put("messages_per_s", messages.sum() / window.seconds())
            .put("rounds", next.get() / (double) queues.size());
    }
}
