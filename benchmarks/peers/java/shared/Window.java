/** The clock of a load: a warm-up, which does not count, and the measured time. */
final class Window {
    private final long startsNs;
    private final long endsNs;

    /** Starts the warm-up. Settings: warm_s, measured_s. */
    Window() {
        startsNs = System.nanoTime() + (long) (Settings.seconds("warm_s") * 1e9);
        endsNs = startsNs + (long) (Settings.seconds("measured_s") * 1e9);
    }

    boolean over() {
        return System.nanoTime() >= endsNs;
    }

    /** Returns true if work that finishes now counts. */
    boolean counts() {
        long now = System.nanoTime();
        return startsNs <= now && now < endsNs;
    }

    double seconds() {
        return (endsNs - startsNs) / 1e9;
    }
}
