// Benchmarks of sleeps: each operation takes SLEEP_US microseconds, or half of that.
// Run: SLEEP_US=2000 go test -bench=. -benchmem
package sleeping

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"
)

var truth = map[string]float64{}

func sleep(b *testing.B, share float64) {
	us, _ := strconv.ParseFloat(os.Getenv("SLEEP_US"), 64)
	began := time.Now()
	for i := 0; i < b.N; i++ {
		time.Sleep(time.Duration(us * share * 1000))
	}
	truth[b.Name()] = time.Since(began).Seconds() / float64(b.N)
	told, _ := json.Marshal(map[string]any{"figures": truth})
	os.WriteFile(os.Getenv("RECORDING_TRUTH"), told, 0o644)
}

func BenchmarkWhole(b *testing.B) { sleep(b, 1) }

func BenchmarkHalf(b *testing.B) { sleep(b, 0.5) }
