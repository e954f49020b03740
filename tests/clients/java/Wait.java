import java.util.concurrent.Callable;

/** Waits for conditions with a generous limit. */
final class Wait {
    private static final long LIMIT_MS = 100_000;
    private static final long POLL_MS = 50;
    private static final long QUIET_MS = 1_500;

    private Wait() {
    }

    /** Polls the condition, and returns false if it is not true within the limit. */
    static boolean until(Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + LIMIT_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > deadline) {
                return false;
            }
            Thread.sleep(POLL_MS);
        }
        return true;
    }

    /** Waits for messages that should not come. */
    static void quiet() throws InterruptedException {
        Thread.sleep(QUIET_MS);
    }
}
