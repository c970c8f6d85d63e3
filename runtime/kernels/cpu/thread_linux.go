package cpu

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// shortSlice is how long Linux (6.12 and later) lets a thread of a pool run before
// others have their turn. A thread that yields is charged what is left of it: so
// it is the least there is (the usual is 0.7 to 2.8 ms), and a thread that waits
// gives the processor away and still gets nearly its share of it.
const shortSlice = 100 * time.Microsecond

// coreSets are the physical cores that this process may use, each as the set
// of its processors; none when unknown. They are those before any thread was
// bound.
var coreSets = sync.OnceValue(findCores)

func findCores() (sets []unix.CPUSet) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return nil
	}
	at := map[string]int{} // by the list of its processors
	for i := range 64 * len(all) {
		if !all.IsSet(i) {
			continue
		}
		b, err := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(i) + "/topology/thread_siblings_list")
		if err != nil {
			return nil
		}
		name := strings.TrimSpace(string(b))
		n, ok := at[name]
		if !ok {
			n = len(sets)
			at[name], sets = n, append(sets, unix.CPUSet{})
		}
		sets[n].Set(i)
	}
	return sets
}

// cores is the number of physical cores that this process may use; 0 when
// unknown.
func cores() int { return len(coreSets()) }

// yield lets another thread have the processor, if one waits for it.
func yield() { unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// placement says where the threads of a pool run.
type placement struct {
	cores []unix.CPUSet // one for each thread; none: wherever the system likes
}

// newPlacement gives each thread a core when there are as many. The system
// by itself leaves two of them on one core for long while another process has
// the other core.
func newPlacement(threads int) placement {
	if sets := coreSets(); len(sets) == threads {
		return placement{sets}
	}
	return placement{}
}

// bind makes the calling goroutine's thread number i of the pool until the
// goroutine ends. What the system refuses is left as it is: only speed beside
// other processes depends on it.
func (p placement) bind(i int) {
	runtime.LockOSThread()
	if p.cores != nil {
		_ = unix.SchedSetaffinity(0, &p.cores[i])
	}
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return
	}
	a.Runtime = uint64(shortSlice)
	_ = unix.SchedSetAttr(0, a, 0)
}
