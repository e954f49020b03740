import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.ResponseCode;

/**
 * Looks up single messages by a unique key, or by offset message id, one after the other. Settings: topic, by
 * (key, id), samples_file (a line for each message: key, offset message id), warm_ups (lookups before the clock starts,
 * among the first `hot` of the shuffled samples), lookups (of the samples after `skip`), stepwise (1: before each of
 * them it prints a line and waits for a line).
 *
 * An answer contains at most MOST entries of the index, the newest with the key's hash; the client leaves out those of
 * other keys. All messages of a batch have an entry by the batch's UNIQ_KEY, so a key whose hash a newer batch shares
 * is not found: about twenty of ten million keys in batches of a thousand. Such a lookup is counted but not measured.
 */
public final class Lookup {
    private static final long SEED = 6;
    private static final int MOST = 32;
    private static final int ONE_LOST_AMONG = 1000; // and one in a smaller sample: more is an error
    private static final String TOPIC = Settings.text("topic");
    private static final boolean BY_KEY = Settings.text("by").equals("key");

    public static void main(String[] arguments) {
        Program.run(Lookup::lookUp);
    }

    private static Answer lookUp() throws Exception {
        DefaultMQPullConsumer consumer = Clients.consumer();
        Clients.queues(consumer, TOPIC);
        List<String> samples = Files.readAllLines(Path.of(Settings.text("samples_file")));
        Collections.shuffle(samples, new Random(SEED));
        for (int number = 0; number < Settings.number("warm_ups"); number++) {
            isFound(consumer, samples.get(number % Settings.number("hot")));
        }
        Times times = new Times();
        List<String> lost = new ArrayList<>();
        int skip = Settings.number("skip");
        for (String sample : samples.subList(skip, skip + Settings.number("lookups"))) {
            if (Settings.number("stepwise") > 0) {
                Program.tell(new Answer().put("lookups", times.count()));
                System.in.read();
            }
            long before = System.nanoTime();
            if (isFound(consumer, sample)) {
                times.add(System.nanoTime() - before);
            } else {
                lost.add(sample);
            }
        }
        if (lost.size() > Math.max(1, samples.size() / ONE_LOST_AMONG)) {
            throw new IllegalStateException("not found: " + lost);
        }
        return times.into(new Answer()).put("lost", lost.size());
    }

    private static boolean isFound(DefaultMQPullConsumer consumer, String sample) throws Exception {
        String[] keyAndId = sample.split(" ");
        MessageExt found;
        try {
            found = BY_KEY
                ? consumer.queryMessage(TOPIC, keyAndId[0], MOST, 0, Long.MAX_VALUE).getMessageList().get(0)
                : consumer.viewMessage(TOPIC, keyAndId[1]);
        } catch (MQClientException error) {
            if (BY_KEY && error.getResponseCode() == ResponseCode.NO_MESSAGE) {
                return false;
            }
            throw error;
        }
        if (!keyAndId[0].equals(found.getKeys())) {
            throw new IllegalStateException(sample + " gives " + found);
        }
        return true;
    }
}
