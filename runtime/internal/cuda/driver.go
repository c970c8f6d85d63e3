package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// Driver is an opened driver, of real GPUs or of a simulated machine. Its
// methods may be called from any goroutine.
type Driver struct {
	api      int    // 12040 is 12.4
	version  string // "550.54.14"; "" unknown
	note     string // why there are fewer devices than one might expect; "" none
	props    []Properties
	ordinals []int // of the driver, by device
	links    map[[2]int]LinkProperties

	mu      sync.Mutex
	devices map[int]*Device
	closed  bool
}

// Version is the API version the driver speaks (12040 is 12.4) and the
// driver's own version ("550.54.14"; "" unknown).
func (d *Driver) Version() (api int, driver string) { return d.api, d.version }

// Devices are the visible GPUs in visible order. There may be none; Note then
// says why.
func (d *Driver) Devices() []Properties { return append([]Properties(nil), d.props...) }

// Note says what the environment changed about the list of devices, for
// people; "" when nothing.
func (d *Driver) Note() string { return d.note }

// Link is what is said of copies from one device to another.
func (d *Driver) Link(from, to int) LinkProperties { return d.links[[2]int{from, to}] }

// Device starts the owner of GPU i, with the device's primary context current
// on its thread, or returns the one already started.
func (d *Driver) Device(i int) (*Device, error) {
	if i < 0 || i >= len(d.props) {
		return nil, fmt.Errorf("cuda:%d: no such device: there are %d", i, len(d.props))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if dev := d.devices[i]; dev != nil && !dev.isClosed() {
		return dev, nil
	}
	dev, err := startDevice(i, d.ordinals[i], d.props[i])
	if err != nil {
		return nil, err
	}
	if d.devices == nil {
		d.devices = map[int]*Device{}
	}
	d.devices[i] = dev
	return dev, nil
}

// Close closes all devices. Another Open may follow.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var errs []error
	for _, dev := range d.devices {
		errs = append(errs, dev.Close())
	}
	released()
	return errors.Join(errs...)
}
