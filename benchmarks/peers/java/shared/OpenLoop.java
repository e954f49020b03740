import java.nio.ByteBuffer;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends at fixed times, independently of the answers. A message contains the time when it was due, so that a pause of
 * the system shows in every message sent during it. Settings: rate (per second), body (bytes), warm_s, measured_s.
 */
final class OpenLoop {
    private static final long SPIN_NS = 50_000;
    private static final long DEADLINE_S = 60;

    /** Sends one body; must not wait for its answer. */
    interface Sender {
        void send(byte[] body) throws Exception;
    }

    private final int rate = Settings.number("rate");
    private final int warm = (int) (rate * Settings.seconds("warm_s"));
    private final int total = warm + (int) (rate * Settings.seconds("measured_s"));
    private final Times visible = new Times();
    private volatile int seen;

    void send(Sender sender) throws Exception {
        long start = System.nanoTime();
        for (int number = 0; number < total; number++) {
            long due = start + number * 1_000_000_000L / rate;
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                if (left > SPIN_NS) {
                    LockSupport.parkNanos(left - SPIN_NS);
                }
            }
            byte[] body = new byte[Settings.number("body")];
            ByteBuffer.wrap(body).putLong(due);
            sender.send(body);
        }
    }

    /** Records that a consumer has this body now. Call it from one thread, in the order of sends. */
    void see(byte[] body) {
        long took = System.nanoTime() - ByteBuffer.wrap(body).getLong();
        if (seen >= warm) {
            visible.add(took);
        }
        seen++;
    }

    boolean sawAll() {
        return seen >= total;
    }

    /** Waits for the last message; throws if it does not come in time. */
    Answer answer() throws Exception {
        long deadline = System.nanoTime() + DEADLINE_S * 1_000_000_000L;
        while (!sawAll()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("saw " + seen + " of " + total);
            }
            Thread.sleep(10);
        }
        return visible.into(new Answer());
    }
}
