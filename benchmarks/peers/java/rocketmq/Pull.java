import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One consumer with a thread for each queue, from the first message to the last, repeatedly. Settings: topic, most
 * (messages that a pull requests), warm_s, measured_s.
 */
public final class Pull {
    public static void main(String[] arguments) {
        Program.run(Pull::pull);
    }

    private static Answer pull() throws Exception {
        DefaultMQPullConsumer consumer = Clients.consumer();
        Window window = new Window();
        LongAdder messages = new LongAdder();
        LongAdder bytes = new LongAdder();
        List<Callable<Void>> loops = new ArrayList<>();
        for (MessageQueue queue : Clients.queues(consumer, Settings.text("topic"))) {
            loops.add(() -> pullUntilOver(consumer, queue, window, messages, bytes));
        }
        Program.together(loops);
        return new Answer()
            .put("messages_per_s", messages.sum() / window.seconds())
            .put("mb_per_s", bytes.sum() / window.seconds() / 1e6);
    }

    private static Void pullUntilOver(DefaultMQPullConsumer consumer, MessageQueue queue, Window window,
            LongAdder messages, LongAdder bytes) throws Exception {
        long end = consumer.maxOffset(queue);
        if (end == 0) {
            throw new IllegalStateException(queue + " is empty");
        }
        long next = 0;
        long seen = 0;
        while (!window.over()) {
            PullResult result = consumer.pull(queue, "*", next, Settings.number("most"));
            boolean counts = window.counts();
            for (MessageExt message : result.getMsgFoundList()) {
                if (counts) {
                    messages.increment();
                    bytes.add(message.getBody().length);
                }
            }
            seen += result.getMsgFoundList().size();
            next = result.getNextBeginOffset();
            if (next >= end) {
                if (seen != end) {
                    throw new IllegalStateException(queue + " has " + end + " messages and gave " + seen);
                }
                next = 0;
                seen = 0;
            }
        }
        return null;
    }
}
