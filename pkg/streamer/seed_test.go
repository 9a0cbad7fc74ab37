package streamer_test
import ("testing";"os";"strconv"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/workload"
)
func TestSeed(t *testing.T) {
	material := append(shared.Envelopes(t, false), workload.Mixed(5)...)
	n, _ := strconv.Atoi(os.Getenv("SEED"))
	for range 20 { runSession(t, uint64(n), material) }
}
