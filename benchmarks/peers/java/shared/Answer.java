import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** The result of a load program: numbers by name, printed as one line of JSON. */
final class Answer {
    private final Map<String, Number> numbers = new LinkedHashMap<>();

    Answer put(String name, Number number) {
        numbers.put(name, number);
        return this;
    }

    @Override
    public String toString() {
        return numbers.entrySet().stream()
            .map(entry -> '"' + entry.getKey() + "\":" + entry.getValue())
            .collect(Collectors.joining(",", "{", "}"));
    }
}
