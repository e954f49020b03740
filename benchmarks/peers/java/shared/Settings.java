/** The settings of a load program: system properties without defaults. */
final class Settings {
    private Settings() {
    }

    static String text(String name) {
        String value = System.getProperty(name);
        if (value == null) {
            throw new IllegalArgumentException("no -D" + name);
        }
        return value;
    }

    static int number(String name) {
        return Integer.parseInt(text(name));
    }

    static double seconds(String name) {
        return Double.parseDouble(text(name));
    }
}
