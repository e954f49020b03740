import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Sends messages in batches to all queues. Settings: topic, topics, messages, batch, body, keyed (1: a unique key for
 * each message, because the broker gives all messages of a batch one UNIQ_KEY), samples (number of recorded messages,
 * evenly spread), samples_file (a line for each of them: key or -, offset message id).
 */
public final class Fill {
    private static final int PRODUCERS = 4;
    private static final int BATCH = Settings.number("batch");
    private static final long BATCHES = (Settings.number("messages") + BATCH - 1) / BATCH;
    private static final boolean KEYED = Settings.number("keyed") > 0;
    private static final AtomicLong NEXT = new AtomicLong();
    private static final List<String> SAMPLES = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] arguments) {
        Program.run(Fill::fill);
    }

    private static Answer fill() throws Exception {
        List<Callable<Void>> loops = new ArrayList<>();
        for (int number = 0; number < PRODUCERS; number++) {
            DefaultMQProducer producer = Clients.producer("producer-" + number);
            List<MessageQueue> queues = new ArrayList<>();
            for (String topic : Clients.topics()) {
                queues.addAll(Clients.queues(producer, topic));
            }
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
            List<Message> batch = Append.batch(queue.getTopic(), body, BATCH);
            if (KEYED) {
                for (int place = 0; place < BATCH; place++) {
                    batch.get(place).setKeys("key-" + (number * BATCH + place));
                }
            }
            SendResult result = Clients.acknowledged(producer.send(batch, queue));
            if (number % every == 0 && SAMPLES.size() < Settings.number("samples")) {
                String firstId = result.getOffsetMsgId().split(",", 2)[0];
                SAMPLES.add((KEYED ? batch.get(0).getKeys() : "-") + " " + firstId);
            }
        }
        return null;
    }
}
