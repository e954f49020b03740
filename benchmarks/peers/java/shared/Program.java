import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The frame of every load program: its answer is printed and it ends with 0, or it throws and ends with 1. */
final class Program {
    private static final PrintStream ANSWERS = System.out;

    private Program() {
    }

    /** Ends the process, because clients leave threads behind. Whatever else prints goes to the standard error. */
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

    /** Runs all at once, each on a thread of its own; throws what the first that failed threw. */
    static <T> List<T> together(List<Callable<T>> works) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(works.size());
        List<T> results = new ArrayList<>();
        for (Future<T> each : threads.invokeAll(works)) {
            results.add(each.get());
        }
        return results;
    }
}
