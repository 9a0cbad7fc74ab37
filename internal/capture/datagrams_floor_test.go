package capture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A floor counts once enough datagrams came, or enough time passed, or nothing is missing below it.
func TestFloors(t *testing.T) {
	start := time.Unix(1e9, 0)
	u := units{next: 5}
	assert.Zero(t, u.passed(5, 1, start))
	assert.Zero(t, u.passed(7, 2, start))
	assert.Zero(t, u.passed(6, 3, start), "an older one")
	assert.Zero(t, u.passed(9, 3, start))
	assert.Zero(t, u.passed(9, 1+lateDatagrams, start))
	assert.EqualValues(t, 7, u.passed(9, 2+lateDatagrams, start))
	assert.EqualValues(t, 9, u.passed(9, 3+lateDatagrams, start))
	u.next = 9
	assert.Empty(t, u.floors)

	assert.Zero(t, u.passed(12, 100, start))
	assert.Zero(t, u.passed(12, 101, start.Add(lateTime-1)))
	assert.EqualValues(t, 12, u.passed(12, 102, start.Add(lateTime)))
	u.next = 12

	assert.Zero(t, u.passed(20, 200, start))
	u.next = 20 // the late ones came
	assert.LessOrEqual(t, u.passed(20, 201, start), u.next)
	assert.Empty(t, u.floors)

	for n := range 1000 {
		u.passed(uint64(100+n), 300+n, start)
		assert.LessOrEqual(t, len(u.floors), lateDatagrams)
	}
}
