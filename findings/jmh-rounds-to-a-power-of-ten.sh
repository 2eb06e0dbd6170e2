#!/usr/bin/env bash
# Guess: JMH prints every score as a number; a slow operation in a large unit has few digits.
# Real: below 0.001 of the unit JMH prints the next power of ten with a sign of its own, in superscript digits
# (`≈ 10⁻⁴`), and no error beside it. Benchmarks that differ by a factor of 2 read alike, and a program that
# takes the number of the column finds none. The JSON result (`-rf json`) has the digits.
# Package: org.openjdk.jmh:jmh-core and jmh-generator-annprocess 1.37, with Maven and a JDK (17.0.15).
# Source: github.com/openjdk/jmh, class org.openjdk.jmh.util.ScoreFormatter
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

dependency() { echo "<dependency><groupId>org.openjdk.jmh</groupId><artifactId>$1</artifactId><version>1.37</version></dependency>"; }
cat > pom.xml <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>$(dependency jmh-core)$(dependency jmh-generator-annprocess)</dependencies></project>
EOF
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
cat > Sleep.java <<"EOF"
package finding;

import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Benchmark;

public class Sleep {
    @Benchmark
    public void ms4() {
        LockSupport.parkNanos(4_000_000);
    }

    @Benchmark
    public void ms8() {
        LockSupport.parkNanos(8_000_000);
    }
}
EOF
mkdir classes
javac -cp "lib/*" -d classes Sleep.java
# Operations per microsecond: about 0.00025 and 0.000125.
java -cp "classes:lib/*" org.openjdk.jmh.Main -f 1 -wi 0 -i 1 -r 1 -bm thrpt -tu us -rf json -rff result.json > printed
grep -A 3 "^Benchmark" printed
grep '"score" ' result.json

score() { grep -o "Sleep.$1 .*" printed | tail -1 | awk '{ print $3 $4 }'; }
[ "$(score ms4)" = "≈10⁻⁴" ] || changed "4 ms: a number is printed: $(score ms4)"
[ "$(score ms8)" = "≈10⁻⁴" ] || changed "8 ms: another power is printed: $(score ms8)"
awk '/"score" / { sub(",", "", $3); n++; if ($3 + 0 <= 0 || $3 + 0 >= 0.001) exit 1 } END { exit n != 2 }' result.json ||
    changed "the JSON result has no digits"
