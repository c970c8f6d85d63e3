package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Device is one GPU with its owner: a goroutine locked to an OS thread on
// which the GPU's primary context is current, and which makes all its calls.
// Its methods may be called from any goroutine, Run not from the owner's own.
type Device struct {
	index int
	props Properties

	mu     sync.Mutex
	queue  []job
	closed bool
	wake   chan struct{} // capacity 1: there is something in queue, or closed
	ended  chan error    // the owner's last word

	closeOnce sync.Once
	closeErr  error

	context contextHandle // written before startDevice returns
}

// Thread is the right to call the driver for one GPU. It is valid inside the
// function it is given to, on the goroutine that called it.
type Thread struct {
	dev *Device
	threadState
}

// job is one piece of work; exactly one of run and post is set.
type job struct {
	run  func(*Thread) error
	post func(*Thread)
	done chan error // of run, capacity 1
}

// Waiting for an owner to start or to end is bounded: a driver may hang.
const (
	startDeadline = 2 * time.Minute
	closeDeadline = 10 * time.Second
)

// dones are reply channels, which only go back after their reply was read.
var dones = sync.Pool{New: func() any { return make(chan error, 1) }}

// startDevice starts the owner of the driver's device number ordinal.
func startDevice(index, ordinal int, props Properties) (*Device, error) {
	d := &Device{index: index, props: props, wake: make(chan struct{}, 1), ended: make(chan error, 1)}
	started := make(chan error, 1)
	go d.own(ordinal, started)
	timer := time.NewTimer(startDeadline)
	defer timer.Stop()
	select {
	case err := <-started:
		if err != nil {
			return nil, err
		}
		return d, nil
	case <-timer.C:
		d.shut()
		return nil, &DeadlineError{Device: index, Waited: startDeadline, Err: errors.New("its context could not be made in time")}
	}
}

// own is the owner. The thread is never unlocked, so that it ends with it.
func (d *Device) own(ordinal int, started chan<- error) {
	runtime.LockOSThread()
	t := &Thread{dev: d}
	if err := t.begin(ordinal); err != nil {
		d.shut()
		started <- err
		return
	}
	started <- nil
	var jobs []job
	for {
		d.mu.Lock()
		jobs, d.queue = d.queue, jobs[:0]
		closed := d.closed
		d.mu.Unlock()
		if len(jobs) == 0 {
			if closed {
				d.ended <- t.end()
				return
			}
			<-d.wake
			continue
		}
		for i := range jobs {
			j := jobs[i]
			jobs[i] = job{} // keeps nothing alive
			if j.post != nil {
				j.post(t)
			} else {
				j.done <- j.run(t)
			}
		}
	}
}

func (d *Device) add(j job) bool {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return false
	}
	d.queue = append(d.queue, j)
	d.mu.Unlock()
	d.signal()
	return true
}

func (d *Device) signal() {
	select {
	case d.wake <- struct{}{}:
	default: // the owner has not yet taken the last one, and will look
	}
}

// shut takes no more work. What is queued is still done.
func (d *Device) shut() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.signal()
}

func (d *Device) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Index is the device's number in Driver.Devices.
func (d *Device) Index() int { return d.index }

// Properties is what is known of the GPU.
func (d *Device) Properties() Properties { return d.props }

// Run has f run on the owner, behind everything queued before, and waits for
// it, at most until ctx ends. Then it returns a *DeadlineError; f may still
// run later, and the owner may be stuck in the driver. f must not call Run.
func (d *Device) Run(ctx context.Context, f func(t *Thread) error) error {
	done := dones.Get().(chan error)
	if !d.add(job{run: f, done: done}) {
		return fmt.Errorf("cuda:%d: %w", d.index, ErrClosed)
	}
	start := time.Now()
	select {
	case err := <-done:
		dones.Put(done)
		return err
	case <-ctx.Done():
		return &DeadlineError{Device: d.index, Waited: time.Since(start), Err: ctx.Err()}
	}
}

// Post queues f for the owner and does not wait. It says whether f will run:
// false once the device is closed. The queue has no bound: whoever posts keeps
// count of what is outstanding.
func (d *Device) Post(f func(t *Thread)) bool { return d.add(job{post: f}) }

// Close lets the owner finish what is queued, gives the context back and ends
// the thread. An owner stuck in the driver is left behind, with an error.
func (d *Device) Close() error {
	d.closeOnce.Do(func() {
		d.shut()
		timer := time.NewTimer(closeDeadline)
		defer timer.Stop()
		select {
		case d.closeErr = <-d.ended:
		case <-timer.C:
			d.closeErr = &DeadlineError{Device: d.index, Waited: closeDeadline, Err: errors.New("left behind")}
		}
	})
	return d.closeErr
}
