package cuda

import (
	"context"
	"errors"
	"time"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
)

// Time implements device.Timer.
func (d *Device) Time(ctx context.Context, s device.Stream, f func() error) (took time.Duration, err error) {
	var marks [2]*event
	err = d.do("make events", func(t *driver.Thread) error {
		for i := range marks {
			h, err := t.NewEvent(true)
			if err != nil {
				return err
			}
			marks[i] = &event{dev: d, handle: h}
		}
		return nil
	})
	defer func() {
		for _, m := range marks {
			if m != nil {
				err = errors.Join(err, m.Close())
			}
		}
	}()
	if err != nil {
		return 0, err
	}
	s.Record(marks[0])
	if err := f(); err != nil {
		return 0, err
	}
	s.Record(marks[1])
	if err := s.Sync(ctx); err != nil {
		return 0, err
	}
	err = d.do("read events", func(t *driver.Thread) (err error) {
		took, err = t.Elapsed(marks[0].handle, marks[1].handle)
		return err
	})
	return took, err
}

var _ device.Timer = (*Device)(nil)
