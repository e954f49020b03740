/** What a load program was told: system properties, none of which has a default. */
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
