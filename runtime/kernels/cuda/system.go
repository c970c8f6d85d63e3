package cuda

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"infer/runtime/arch"
	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/internal/cuda/sim"
)

// ErrNoDriver: this machine, or this build, has no CUDA driver. It is not a
// fault: the CPU computes.
var ErrNoDriver = driver.ErrNoDriver

// Precision says how exact the results are to be.
type Precision string

// Precisions: Auto has activations in f32 and K/V in bf16, as the CPU has, so
// that texts agree and a plan may mix both; BF16 has both in bf16, the fastest;
// F32 both in f32.
const (
	Auto Precision = "auto"
	BF16 Precision = "bf16"
	F32  Precision = "f32"
)

// Options of a System; the zero value is right for most.
type Options struct {
	// Simulate is a machine to simulate instead of opening the driver: a
	// preset like 2xRTX-5090, or the name of a topology file.
	Simulate string
	// Machine is a simulated machine made by the caller, who may inject faults.
	Machine *sim.Machine
	// Checks makes a simulated machine look for races and reads of memory that
	// was never written.
	Checks bool

	Precision   Precision     // "": Auto
	MemoryLimit map[int]int64 // bytes, by device; none: what is free
	// Timeout of a wait that has no deadline of its own; 0: two minutes, and
	// twenty on a simulated machine.
	Timeout time.Duration
	// Synchronous waits for every operation, so that an error names the one
	// that failed.
	Synchronous bool
	// NoGraphs launches every kernel by itself.
	NoGraphs bool
}

// System is the machine's GPUs. Backends are opened when they are asked for.
type System struct {
	options   Options
	driver    *driver.Driver
	machine   *sim.Machine
	uninstall func()
	props     []driver.Properties
	version   string
	pinned    pinned
	someLost  atomic.Bool // a device is lost

	mu       sync.Mutex
	backends map[int]*Backend
}

// Open finds the GPUs. Without a driver the error is ErrNoDriver.
func Open(o Options) (_ *System, err error) {
	switch o.Precision {
	case "":
		o.Precision = Auto
	case Auto, BF16, F32:
	default:
		return nil, fmt.Errorf("open the GPUs: precision %q, want %q, %q or %q", o.Precision, Auto, BF16, F32)
	}
	s := &System{options: o, machine: o.Machine, backends: map[int]*Backend{}}
	if o.Simulate != "" {
		if s.machine, err = simulate(o); err != nil {
			return nil, err
		}
	}
	if s.options.Timeout == 0 {
		s.options.Timeout = 2 * time.Minute
		if s.machine != nil {
			s.options.Timeout = 20 * time.Minute
		}
	}
	if s.machine != nil {
		if s.uninstall, err = s.machine.Install(); err != nil {
			return nil, fmt.Errorf("simulate GPUs: %w", err)
		}
	}
	defer func() {
		if err != nil && s.uninstall != nil {
			s.uninstall()
		}
	}()
	if s.driver, err = driver.Open(); err != nil {
		return nil, err
	}
	s.props = s.driver.Devices()
	_, s.version = s.driver.Version()
	return s, nil
}

func simulate(o Options) (*sim.Machine, error) {
	spec, err := readSpec(o.Simulate)
	if err != nil {
		return nil, err
	}
	var so sim.Options
	if o.Checks {
		so.Checks = sim.CheckAll
	}
	m, err := sim.New(spec, so)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", o.Simulate, err)
	}
	return m, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// Driver is the driver's own version ("570.86.10"; "" unknown) and that of the
// CUDA it speaks ("12.8").
func (s *System) Driver() (version, api string) {
	n, version := s.driver.Version()
	return version, fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}

// Note says, for people, why there are fewer GPUs than one might expect; "" when
// there is nothing to say.
func (s *System) Note() string { return s.driver.Note() }

// Infos describes every GPU, without opening any.
func (s *System) Infos() []device.Info {
	var all []device.Info
	for i := range s.props {
		all = append(all, s.info(i))
	}
	return all
}

func (s *System) info(i int) device.Info {
	p := &s.props[i]
	c := arch.Of(p.Major, p.Minor)
	return device.Info{
		ID: device.ID{Kind: device.CUDA, Index: i}, Name: p.Name, TotalBytes: p.TotalBytes, FreeBytes: s.room(i),
		Units: p.SMs, Features: "compute capability " + c.String(),
		GPU: &device.GPU{
			Capability: c, UUID: p.UUID, PCI: strings.ToLower(p.PCI), NUMANode: p.NUMANode,
			PCIeGen: p.PCIeGen, PCIeWidth: p.PCIeWidth, BAR1Bytes: p.BAR1Bytes, MemoryGBps: p.MemoryGBps,
			DriverVersion: s.version, Simulated: p.Simulated,
		},
	}
}

// room is what may be used of a device's memory.
func (s *System) room(i int) int64 {
	free := s.props[i].FreeBytes
	if limit := s.options.MemoryLimit[i]; limit > 0 && (limit < free || free == 0) {
		return limit
	}
	return free
}

// Links describes every directed pair of GPUs.
func (s *System) Links() []device.Link {
	var all []device.Link
	for from := range s.props {
		for to := range s.props {
			if from == to {
				continue
			}
			l := s.driver.Link(from, to)
			all = append(all, device.Link{
				From: device.ID{Kind: device.CUDA, Index: from}, To: device.ID{Kind: device.CUDA, Index: to},
				Kind: l.Kind, PeerAccess: l.PeerAccess, P2PStatus: l.P2PStatus,
				PeerGBps: l.PeerGBps, StagedGBps: l.StagedGBps, PeerUS: l.PeerUS, StagedUS: l.StagedUS,
			})
		}
	}
	return all
}

// Machine is the simulated machine, nil when the GPUs are real.
func (s *System) Machine() *sim.Machine { return s.machine }

// Backend opens a GPU, once.
func (s *System) Backend(i int) (*Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.backends[i]; b != nil {
		return b, nil
	}
	if i < 0 || i >= len(s.props) {
		return nil, fmt.Errorf("open cuda:%d: there are %d GPUs here", i, len(s.props))
	}
	d, err := openDevice(s, i)
	if err != nil {
		return nil, fmt.Errorf("open cuda:%d (%s): %w", i, s.props[i].Name, err)
	}
	b := newBackend(d, s.options.Precision)
	s.backends[i] = b
	return b, nil
}

// Close closes every device that was opened. Buffers and streams must have
// been freed and closed.
func (s *System) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.machine != nil {
		s.machine.EndHangs() // nobody waits for them any more
	}
	for _, b := range s.backends {
		errs = append(errs, b.dev.Close())
	}
	clear(s.backends)
	errs = append(errs, s.driver.Close())
	if s.uninstall != nil {
		s.uninstall()
		s.uninstall = nil
	}
	return errors.Join(errs...)
}
