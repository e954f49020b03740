import java.util.Arrays;

/** Durations, from any number of threads, and their percentiles. */
final class Times {
    private long[] nanos = new long[1 << 16];
    private int count;

    synchronized void add(long duration) {
        if (count == nanos.length) {
            nanos = Arrays.copyOf(nanos, 2 * count);
        }
        nanos[count++] = duration;
    }

    synchronized int count() {
        return count;
    }

    /** Adds p50, p99, p99.9 and the maximum, in ms. A percentile is the least duration that covers its share. */
    synchronized Answer into(Answer answer) {
        if (count == 0) {
            throw new IllegalStateException("nothing was measured");
        }
        long[] sorted = Arrays.copyOf(nanos, count);
        Arrays.sort(sorted);
        return answer.put("samples", count)
            .put("p50_ms", at(sorted, 0.5)).put("p99_ms", at(sorted, 0.99))
            .put("p999_ms", at(sorted, 0.999)).put("max_ms", at(sorted, 1));
    }

    private static double at(long[] sorted, double share) {
        return sorted[Math.max(0, (int) Math.ceil(share * sorted.length) - 1)] / 1e6;
    }
}
