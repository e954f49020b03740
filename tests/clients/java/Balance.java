import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** Two members of a group: they share the queues, and one takes over all of them when the other one stops. */
final class Balance {
    private static final int ROUNDS = 5;
    private final Clients clients;
    private final List<Received> members = new ArrayList<>();
    private int sent;

    private Balance(Clients clients) {
        this.clients = clients;
    }

    static JSONObject run(Clients clients) throws Exception {
        return new Balance(clients).run();
    }

    private JSONObject run() throws Exception {
        join();
        boolean alone = Wait.until(() -> round().get(0) == queues());
        DefaultMQPushConsumer second = join();
        boolean shared = Wait.until(() -> round().equals(List.of(queues() / 2, queues() / 2)));
        List<List<Integer>> stable = rounds();
        second.shutdown();
        boolean takenOver = Wait.until(() -> round().get(0) == queues());
        List<List<Integer>> after = rounds();
        Set<String> bodies = members.stream()
            .flatMap(each -> Seen.bodies(each.all()).stream()).collect(Collectors.toSet());
        return new JSONObject()
            .fluentPut("alone", alone)
            .fluentPut("shared", shared)
            .fluentPut("rounds_while_shared", stable)
            .fluentPut("taken_over", takenOver)
            .fluentPut("rounds_after", after)
            .fluentPut("lost", sent - bodies.size());
    }

    private DefaultMQPushConsumer join() throws Exception {
        Received received = new Received();
        members.add(received);
        DefaultMQPushConsumer consumer = clients.pushConsumer();
        consumer.subscribe(clients.topic, "*");
        consumer.registerMessageListener(received.concurrently());
        consumer.start();
        return consumer;
    }

    private int queues() throws Exception {
        return clients.publishQueues().size();
    }

    /** Sends one message to each queue, waits for all of them, and returns how many each member received. */
    private List<Integer> round() throws Exception {
        int first = sent;
        sent += clients.sendToEachQueue(first).size();
        Set<String> bodies = IntStream.range(first, sent)
            .mapToObj(number -> String.format("m-%02d", number)).collect(Collectors.toSet());
        Wait.until(() -> counts(bodies).stream().mapToInt(Integer::intValue).sum() >= bodies.size());
        Thread.sleep(200); // for duplicates
        return counts(bodies);
    }

    private List<List<Integer>> rounds() throws Exception {
        List<List<Integer>> all = new ArrayList<>();
        for (int number = 0; number < ROUNDS; number++) {
            all.add(round());
        }
        return all;
    }

    private List<Integer> counts(Set<String> bodies) {
        return members.stream()
            .map(each -> (int) Seen.bodies(each.all()).stream().filter(bodies::contains).count())
            .collect(Collectors.toList());
    }
}
