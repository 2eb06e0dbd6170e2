package sleeping;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.openjdk.jmh.annotations.*;

/**
 * Benchmarks of sleeps (JMH 1.37): each operation takes SLEEP_US microseconds, or half of that. RATE: the truth is per second.
 *
 * Build: javac -cp 'lib/*' -d out Sleeping.java; run: java -cp 'out:lib/*' org.openjdk.jmh.Main -bm avgt -tu ms
 */
@Fork(1)
@Warmup(iterations = 0)
@Measurement(iterations = 3, time = 1)
@State(Scope.Thread)
public class Sleeping {
    private final long ns = (long) (1000 * Double.parseDouble(System.getenv("SLEEP_US")));
    private long passedNs;
    private long operations;
    private String name;

    private void sleep(String name, long ns) {
        long began = System.nanoTime();
        while (System.nanoTime() - began < ns) Thread.onSpinWait();
        passedNs += System.nanoTime() - began;
        operations += 1;
        this.name = name;
    }

    @Benchmark
    public void whole() {
        sleep("whole", ns);
    }

    @Benchmark
    public void half() {
        sleep("half", ns / 2);
    }

    /** Add the truth to that of the benchmarks before this one. */
    @TearDown(Level.Trial)
    public void tell() throws IOException {
        Path path = Path.of(System.getenv("RECORDING_TRUTH"));
        String before = Files.readString(path);
        double seconds = passedNs / 1e9 / operations;
        String figure = '"' + name + "\": " + (System.getenv("RATE") == null ? seconds : 1 / seconds);
        Files.writeString(path, before.isEmpty() ? "{\"figures\": {" + figure + "}}" : before.replace("}}", ", " + figure + "}}"));
    }
}
