import com.alibaba.fastjson.JSONObject;
import java.io.File;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.protocol.DataVersion;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.store.ConsumeQueueExt;
import org.apache.rocketmq.store.DefaultMessageFilter;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.queue.ReferredIterator;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * Writes a store with RocketMQ's own DefaultMessageStore, and the results of its getMessage (JSON lines).
 *
 * Needs org.apache.rocketmq:rocketmq-store:5.3.3 and its dependencies. MakeStore MODE ROOT EXPECTED, MODE one of
 *   light      two commit log folders, light queues (LMQ), V2 magic, IPv6 hosts, property CRC, legacy batches
 *   headless   opens a copy of `light` without its first log file, queues and index, with `abort`: rebuilds pre-blank heads
 *   extension  consume queue extension, a compacted topic, and the rest of `light` in one folder
 */
public class MakeStore {
    static MessageStoreConfig config(String mode, String root) {
        MessageStoreConfig c = new MessageStoreConfig();
        c.setStorePathRootDir(root);
        c.setMappedFileSizeCommitLog(16384);
        c.setMappedFileSizeConsumeQueue(400);
        c.setMapperFileSizeBatchConsumeQueue(920);
        c.setMaxHashSlotNum(100);
        c.setMaxIndexNum(400);
        c.setFlushDiskType(FlushDiskType.ASYNC_FLUSH);
        c.setHaListenPort(0);
        c.setTimerWheelEnable(false);
        c.setStorePathCommitLog(root + "/commitlog");
        c.setEnabledAppendPropCRC(true);
        if (!mode.equals("extension")) {
            c.setStorePathCommitLog(root + "/log-b," + root + "/log-a");
            c.setEnableLmq(true);
            c.setEnableMultiDispatch(true);
        } else {
            c.setEnableConsumeQueueExt(true);
            c.setMappedFileSizeConsumeQueueExt(840);
            c.setCompactionMappedFileSize(65536);
            c.setCompactionCqMappedFileSize(4600);
        }
        return c;
    }

    static MessageExtBrokerInner message(int i, String topic, int queue, boolean v6) throws Exception {
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        m.setTopic(topic);
        m.setQueueId(queue);
        m.setBody(("body-" + topic.length() + "-" + i + "-" + "x".repeat(i * 37 % 300)).getBytes());
        m.setTags(i % 3 == 0 ? "TagA" : i % 3 == 1 ? "TagB" : "BatchTest#OrderID001");
        m.setKeys("key-" + i);
        m.setBornTimestamp(1700000000000L + i);
        InetSocketAddress born = new InetSocketAddress(InetAddress.getByName(v6 ? "::1" : "127.0.0.1"), 54321);
        InetSocketAddress store = new InetSocketAddress(InetAddress.getByName(v6 ? "1050::5:600:300c:326b" : "192.168.7.65"), 10911);
        m.setBornHost(born);
        m.setStoreHost(store);
        if (v6) {
            m.setBornHostV6Flag();
            m.setStoreHostAddressV6Flag();
        }
        return m;
    }

    static void put(MessageStore store, MessageExtBrokerInner m) {
        m.setPropertiesString(MessageDecoder.messageProperties2String(m.getProperties()));
        PutMessageResult r = store.putMessage(m);
        if (!r.isOk()) throw new IllegalStateException(r.toString());
    }

    static void batch(MessageStore store, String topic, int queue, int n) throws Exception {
        List<Message> list = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Message m = new Message(topic, "TagA", "batch-key-" + i, ("element-" + i).getBytes());
            list.add(m);
        }
        MessageExtBatch b = new MessageExtBatch();
        b.setTopic(topic);
        b.setQueueId(queue);
        b.setBody(MessageDecoder.encodeMessages(list));
        b.setBornTimestamp(1700000000000L);
        b.setBornHost(new InetSocketAddress("127.0.0.1", 54321));
        b.setStoreHost(new InetSocketAddress("192.168.7.65", 10911));
        PutMessageResult r = store.putMessages(b);
        if (!r.isOk()) throw new IllegalStateException(r.toString());
    }

    public static void main(String[] args) throws Exception {
        String mode = args[0], root = new File(args[1]).getAbsolutePath();
        boolean extension = mode.equals("extension");
        String retry = "%RETRY%" + "g".repeat(130);
        ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
        for (String t : Arrays.asList("Orders", "Audit", retry)) topics.put(t, new TopicConfig(t, 2, 2, 6));
        if (extension) {
            TopicConfig compacted = new TopicConfig("Compacted", 1, 1, 6);
            compacted.setAttributes(new HashMap<>(Collections.singletonMap("cleanup.policy", "COMPACTION")));
            topics.put("Compacted", compacted);
        }
        DefaultMessageStore store = new DefaultMessageStore(config(mode, root), new BrokerStatsManager("peer", true),
            (a, b, c, d, e, f, g) -> { }, new BrokerConfig(), topics);
        if (!store.load()) throw new IllegalStateException("not loaded");
        store.start();
        for (int i = 0; i < 120 && !mode.equals("headless"); i++) {
            MessageExtBrokerInner m = message(i, i % 10 == 9 ? "Audit" : "Orders", i % 2, i % 4 == 3);
            if (!extension && i % 3 == 0)
                MessageAccessor.putProperty(m, "INNER_MULTI_DISPATCH", i % 2 == 0 ? "%LMQ%123,%LMQ%456" : "%LMQ%123");
            put(store, m);
            if (i % 30 == 7) put(store, message(i, retry, 0, false));
            if (i % 40 == 11) batch(store, "Orders", 1, 5);
            if (extension && i % 8 == 0) {
                MessageExtBrokerInner k = message(i, "Compacted", 0, false);
                k.setKeys("compact-" + i % 5);
                put(store, k);
            }
        }
        while (store.dispatchBehindBytes() > 0) Thread.sleep(50);
        Thread.sleep(1500);
        List<String> names = new ArrayList<>(topics.keySet());
        if (!extension) names.addAll(Arrays.asList("%LMQ%123", "%LMQ%456"));
        Collections.sort(names);
        try (PrintWriter out = new PrintWriter(args[2], "UTF-8")) {
            for (String topic : names) for (int q = 0; q < (topic.startsWith("%LMQ%") || topic.equals("Compacted") ? 1 : 2); q++) {
                ConsumeQueueInterface cq = store.findConsumeQueue(topic, q);
                out.println(line("queue", topic, q, "min", store.getMinOffsetInQueue(topic, q), "max", store.getMaxOffsetInQueue(topic, q)));
                ReferredIterator<CqUnit> it = cq.iterateFrom(cq.getMinOffsetInQueue());
                long at = store.getMinOffsetInQueue(topic, q), max = store.getMaxOffsetInQueue(topic, q);
                for (long n = at; n < max; ) {
                    GetMessageResult r = store.getMessage("g", topic, q, n, 32, null);
                    int i = 0;
                    for (ByteBuffer b : r.getMessageBufferList()) {
                        MessageExt m = MessageDecoder.decode(b.slice(), true, false);
                        long offset = r.getMessageQueueOffset().get(i++);
                        JSONObject o = line("message", topic, q, "queueOffset", offset, "physicalOffset", m.getCommitLogOffset());
                        o.put("recordTopic", m.getTopic());
                        o.put("recordQueueOffset", m.getQueueOffset());
                        o.put("body", new String(m.getBody()));
                        o.put("properties", m.getProperties());
                        o.put("sysFlag", m.getSysFlag());
                        o.put("size", m.getStoreSize());
                        o.put("bornHost", m.getBornHost().toString());
                        o.put("storeHost", m.getStoreHost().toString());
                        o.put("msgId", m.getMsgId());
                        ReferredIterator<CqUnit> one = cq.iterateFrom(offset);
                        if (one != null) {
                            CqUnit u = one.next();
                            o.put("unitTagsCode", u.getTagsCode());
                            ConsumeQueueExt.CqExtUnit e = u.getCqExtUnit();
                            if (e != null) {
                                o.put("extSize", e.getSize());
                                o.put("extTagsCode", e.getTagsCode());
                                o.put("extStoreTime", e.getMsgStoreTime());
                                o.put("extBitMapLength", e.getFilterBitMap() == null ? 0 : e.getFilterBitMap().length);
                            }
                            one.release();
                        }
                        out.println(o);
                    }
                    n = r.getNextBeginOffset();
                    r.release();
                }
                if (topic.equals("Compacted")) continue; // its messages come from the compaction log, which has no tags
                for (String tags : Arrays.asList("TagA", "TagA || BatchTest#OrderID001")) {
                    SubscriptionData s = FilterAPI.build(topic, tags, "TAG");
                    List<Long> offsets = new ArrayList<>();
                    for (long n = at; n < max; ) {
                        GetMessageResult r = store.getMessage("g", topic, q, n, 32, new DefaultMessageFilter(s));
                        offsets.addAll(r.getMessageQueueOffset());
                        n = Math.max(r.getNextBeginOffset(), n + 1);
                        r.release();
                    }
                    out.println(line("pull", topic, q, "tags", tags, "queueOffsets", offsets));
                }
            }
        }
        store.shutdown();
        TopicConfigSerializeWrapper w = new TopicConfigSerializeWrapper();
        w.setTopicConfigTable(topics);
        w.setDataVersion(new DataVersion());
        new File(root + "/config").mkdirs();
        try (PrintWriter out = new PrintWriter(root + "/config/topics.json", "UTF-8")) { out.print(w.toJson(true)); }
        System.exit(0);
    }

    static JSONObject line(String kind, String topic, int queue, Object... more) {
        JSONObject o = new JSONObject(true);
        o.put("kind", kind);
        o.put("topic", topic);
        o.put("queueId", queue);
        for (int i = 0; i < more.length; i += 2) o.put((String) more[i], more[i + 1]);
        return o;
    }
}
