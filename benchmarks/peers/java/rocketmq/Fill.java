import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * So many messages, in batches, over all queues of a topic. Settings: topic, messages, batch, body, samples (how many
 * messages, evenly spread), samples_file (a line for each: unique key, offset message id).
 */
public final class Fill {
    private static final int PRODUCERS = 4;
    private static final int BATCH = Settings.number("batch");
    private static final long BATCHES = (Settings.number("messages") + BATCH - 1) / BATCH;
    private static final AtomicLong NEXT = new AtomicLong();
    private static final List<String> SAMPLES = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] arguments) {
        Program.run(Fill::fill);
    }

    private static Answer fill() throws Exception {
        List<Callable<Void>> loops = new ArrayList<>();
        for (int number = 0; number < PRODUCERS; number++) {
            DefaultMQProducer producer = Clients.producer("producer-" + number);
            List<MessageQueue> queues = Clients.queues(producer, Settings.text("topic"));
            loops.add(() -> fillWith(producer, queues));
        }
        Program.together(loops);
        Files.write(Path.of(Settings.text("samples_file")), SAMPLES);
        return new Answer().put("messages", BATCHES * BATCH).put("samples", SAMPLES.size());
    }

    private static Void fillWith(DefaultMQProducer producer, List<MessageQueue> queues) throws Exception {
        byte[] body = new byte[Settings.number("body")];
        long every = Math.max(1, BATCHES / Math.max(1, Settings.number("samples")));
        for (long number = NEXT.getAndIncrement(); number < BATCHES; number = NEXT.getAndIncrement()) {
            MessageQueue queue = queues.get((int) (number % queues.size()));
            SendResult result =
                Clients.acknowledged(producer.send(Append.batch(queue.getTopic(), body, BATCH), queue));
            if (number % every == 0 && SAMPLES.size() < Settings.number("samples")) {
                SAMPLES.add(first(result.getMsgId()) + " " + first(result.getOffsetMsgId()));
            }
        }
        return null;
    }

    private static String first(String identifiers) {
        return identifiers.split(",", 2)[0];
    }
}
