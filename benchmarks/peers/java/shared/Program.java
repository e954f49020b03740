import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs a load program: prints its answer and exits with 0, or prints its exception and exits with 1. */
final class Program {
    private static final PrintStream ANSWERS = System.out;

    private Program() {
    }

    /** Exits the process, because clients leave threads running. Other output goes to standard error. */
    static void run(Callable<Answer> work) {
        System.setOut(System.err);
        int status = 1;
        try {
            tell(work.call());
            status = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(status);
    }

    /** Prints a line. */
    static void tell(Answer answer) {
        ANSWERS.println(answer);
        ANSWERS.flush();
    }

    /** Runs all concurrently, each on a thread of its own; rethrows the first exception. */
    static <T> List<T> together(List<Callable<T>> works) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(works.size());
        List<T> results = new ArrayList<>();
        for (Future<T> each : threads.invokeAll(works)) {
            results.add(each.get());
        }
        return results;
    }
}
