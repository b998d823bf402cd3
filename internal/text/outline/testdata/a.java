package a;

/** A shape. */
@Deprecated(since = "1")
public abstract class Shape<T extends Comparable<T>> implements Base {
    private final int[] sides = {1, 2};

    public Shape(int n) { this.n = n; }

    /** The area. */
    @Override
    public <R> Map<String, List<R>> area(T t) throws IOException {
        Runnable r = new Runnable() { public void run() {} };
        return null;
    }

    abstract void draw();

    enum Kind { ROUND("}") { int f() { return 1; } }, FLAT; int code() { return 0; } }

    public record Point(int x, int y) {}

    interface Visitor { void visit(Shape s); }
}

enum Cause {
    EXPLICIT {
        @Override public boolean evicted() { return false; }
    },
    SIZE(1) { };
    abstract boolean evicted();
}
