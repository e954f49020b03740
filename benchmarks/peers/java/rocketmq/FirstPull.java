import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.impl.CommunicationMode;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.common.filter.ExpressionType;
import org.apache.rocketmq.common.sysflag.PullSysFlag;
import org.apache.rocketmq.remoting.exception.RemotingException;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;

/**
 * Pulls from a broker that is not running yet until it answers with messages. Prints a line when it begins and one with
 * the monotonic clock's time of the answer. Settings: broker, topic (its queue 0).
 */
public final class FirstPull {
    private static final int TIMEOUT_MS = 3_000;
    private static final long POLL_MS = 2;
    private static final long DEADLINE_NS = 600_000_000_000L;

    public static void main(String[] arguments) {
        Program.run(FirstPull::pull);
    }

    private static Answer pull() throws Exception {
        DefaultMQPullConsumer consumer = Clients.consumer();
        MQClientAPIImpl api =
            consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory().getMQClientAPIImpl();
        Program.tell(new Answer().put("began_ns", System.nanoTime()));
        long deadline = System.nanoTime() + DEADLINE_NS;
        while (true) {
            try {
                PullResult result = api.pullMessage(
                    Settings.text("broker"), request(consumer), TIMEOUT_MS, CommunicationMode.SYNC, null);
                if (result.getPullStatus() != PullStatus.FOUND) {
                    throw new IllegalStateException(result.toString());
                }
                return new Answer().put("answered_ns", System.nanoTime());
            } catch (RemotingException error) {
                if (System.nanoTime() > deadline) {
                    throw error;
                }
                Thread.sleep(POLL_MS);
            }
        }
    }

    private static PullMessageRequestHeader request(DefaultMQPullConsumer consumer) {
        PullMessageRequestHeader header = new PullMessageRequestHeader();
        header.setConsumerGroup(consumer.getConsumerGroup());
        header.setTopic(Settings.text("topic"));
        header.setQueueId(0);
        header.setQueueOffset(0L);
        header.setMaxMsgNums(1);
        header.setSysFlag(PullSysFlag.buildSysFlag(false, false, true, false));
        header.setCommitOffset(0L);
        header.setSuspendTimeoutMillis(0L);
        header.setSubscription("*");
        header.setSubVersion(0L);
        header.setExpressionType(ExpressionType.TAG);
        return header;
    }
}
