import com.alibaba.fastjson2.JSONObject;
import java.io.PrintStream;
import java.io.UnsupportedEncodingException;
import java.util.Map;
import java.util.TreeMap;

/**
 * Runs one scenario with RocketMQ's Java client and prints its observations as one JSON object. Arguments: scenario,
 * topic, consumer group. NAMESRV_ADDR: the name server. An error of the client is an observation: the exit status is 0.
 * The scenarios live_… print a line for each event, until their standard input ends.
 */
public final class Scenarios {
    private static final Map<String, Scenario> ALL = new TreeMap<>();
    private static PrintStream answers;

    static {
        ALL.put("send_sync", Sends::sync);
        ALL.put("send_async", Sends::async);
        ALL.put("send_oneway", Sends::oneway);
        ALL.put("send_to_queue", Sends::toQueue);
        ALL.put("send_by_key", Sends::byKey);
        ALL.put("send_batch", Sends::batch);
        ALL.put("send_delayed", Sends::delayed);
        ALL.put("send_compressed", SendForms::compressed);
        ALL.put("send_properties", SendForms::properties);
        ALL.put("send_too_large", SendForms::tooLarge);
        ALL.put("send_queue_out_of_range", SendForms::queueOutOfRange);
        ALL.put("send_unknown_topic", SendForms::unknownTopic);
        ALL.put("send_in_transaction", SendForms::transaction);
        ALL.put("push_concurrent", Pushes::concurrent);
        ALL.put("push_orderly", Pushes::orderly);
        ALL.put("push_broadcast", Pushes::broadcast);
        ALL.put("push_tags", Pushes::tags);
        ALL.put("push_sql92", Pushes::sql92);
        ALL.put("push_pop", Pushes::pop);
        ALL.put("push_balance", Balance::run);
        ALL.put("start_from_last", Starts::fromLast);
        ALL.put("start_from_timestamp", Starts::fromTimestamp);
        ALL.put("start_again", Starts::again);
        ALL.put("retry_once", Retries::once);
        ALL.put("retry_to_dead_letters", Retries::toDeadLetters);
        ALL.put("orderly_suspend", Retries::orderlySuspend);
        ALL.put("orderly_to_dead_letters", Retries::orderlyToDeadLetters);
        ALL.put("lite_subscribe", LitePulls::subscribe);
        ALL.put("lite_assign", LitePulls::assign);
        ALL.put("pull", Pulls::pull);
        ALL.put("pull_offsets", Pulls::offsets);
        ALL.put("pull_search_offset", Pulls::searchOffset);
        ALL.put("query_message", Lookups::run);
        ALL.put("live_send", Live::send);
        ALL.put("live_receive", Live::receive);
        ALL.put("live_receive_new", Live::receiveNew);
    }

    private interface Scenario {
        JSONObject run(Clients clients) throws Exception;
    }

    static void tell(String event) {
        answers.println(event);
    }

    public static void main(String[] arguments) throws UnsupportedEncodingException {
        answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        int status = 1;
        try {
            Clients clients = new Clients(arguments[1], arguments[2]);
            answers.println(ALL.get(arguments[0]).run(clients));
            clients.close();
            status = 0;
        } catch (Exception error) { // one that the scenario is not about
            error.printStackTrace();
        }
        System.exit(status); // the threads of a client would keep the process alive
    }
}
