package streamer

// grownStack is what most goroutines that carry messages need of their stack, in bytes; with what
// the runtime keeps free it makes a stack of 8 KiB.
const grownStack = 6 << 10

// growStack makes the stack of a new goroutine as large as it will need it. The stack would
// otherwise be copied on the way down, twice, and the deeper it is, the more that costs. The
// variable is what takes the space; nobody ever uses it, as that would be to clear it.
//
//go:noinline
func growStack(use bool) (sum byte) {
	if use {
		var space [grownStack]byte
		for i := range space {
			sum += space[i] + byte(i)
			space[sum]++
		}
	}
	return sum
}
