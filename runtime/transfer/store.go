package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"infer/runtime/device"
)

// Store remembers on disk what was found about links:
//
//	KEY.json           verdicts and quarantine, as long as nothing changes (Key)
//	crashes.json       links whose probe ended its process, or the machine
//	probing-PID.json   the link that a process is probing just now
//	lock               held by who changes one of the first two
//
// Nothing here is needed: without a folder that can be written, links are
// probed at each start. It is safe for concurrent use, also by processes.
type Store struct {
	dir    string
	key    Key
	bootID string
	mu     sync.Mutex
}

// ends of a link, by UUID: indexes change.
type ends struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type crash struct {
	ends
	When   time.Time `json:"when"`
	Detail string    `json:"detail"`
}

type quarantined struct {
	ends
	When time.Time `json:"when"`
	Why  string    `json:"why"`
}

type known struct {
	ends
	Finding Finding `json:"finding"`
}

type keyFile struct {
	Schema      string        `json:"schema"`
	Key         Key           `json:"key"`
	Links       []known       `json:"links"`
	Quarantined []quarantined `json:"quarantined,omitempty"`
}

const storeSchema = "infer-links/1"

type marker struct {
	ends
	PID    int       `json:"pid"`
	BootID string    `json:"boot_id"`
	When   time.Time `json:"when"`
}

// OpenStore uses a folder, which it makes when it first writes. Markers that
// probes left behind, which ended their process or the machine, become
// crashes.
func OpenStore(dir string, key Key) (*Store, error) {
	s := &Store{dir: dir, key: key, bootID: key.BootID}
	return s, s.sweep(true)
}

// sweep removes the markers of processes that are gone. With crashes, their
// links are remembered.
func (s *Store) sweep(crashes bool) error {
	list, err := filepath.Glob(filepath.Join(s.dir, "probing-*.json"))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range list {
		m, err := readJSON[marker](name)
		if err != nil {
			if errors.Is(err, errBroken) { // nobody knows whose it was
				err = errors.Join(err, os.Remove(name))
			}
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		if m.BootID == s.bootID && alive(m.PID) {
			continue
		}
		what := "the process that probed it ended, and nobody was left to see how"
		if m.BootID != s.bootID {
			what = "the machine went down while it was probed"
		}
		if crashes {
			errs = append(errs, s.crashed(m.ends, what))
		}
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}

func alive(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

// Crashes are the links not to be probed, with why; by UUIDs.
func (s *Store) crashes() (map[ends]string, error) {
	list, err := readJSON[[]crash](filepath.Join(s.dir, "crashes.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[ends]string{}
	for _, c := range list {
		all[c.ends] = c.Detail + " (" + c.When.Format(time.DateTime) + ")"
	}
	return all, nil
}

func (s *Store) crashed(e ends, detail string) error {
	defer s.lock()()
	name := filepath.Join(s.dir, "crashes.json")
	list, err := readJSON[[]crash](name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errBroken) {
		return err
	}
	list = slices.DeleteFunc(list, func(c crash) bool { return c.ends == e })
	return s.write(name, append(list, crash{e, time.Now().UTC().Truncate(time.Second), detail}))
}

// mark notes, before a link is probed, that it is; the returned func takes it
// back.
func (s *Store) mark(e ends) (unmark func() error, err error) {
	pid := os.Getpid()
	err = s.write(s.markerOf(pid), marker{e, pid, s.bootID, time.Now().UTC()})
	return func() error { return s.unmark(pid) }, err
}

func (s *Store) markerOf(pid int) string {
	return filepath.Join(s.dir, "probing-"+strconv.Itoa(pid)+".json")
}

// unmark takes back what a process noted.
func (s *Store) unmark(pid int) error {
	if err := os.Remove(s.markerOf(pid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) file() string { return filepath.Join(s.dir, s.key.String()+".json") }

// load gives what is known under the key.
func (s *Store) load() (map[ends]Finding, map[ends]string, error) {
	f, err := readJSON[keyFile](s.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	found, bad := map[ends]Finding{}, map[ends]string{}
	if f.Schema == storeSchema {
		for _, l := range f.Links {
			found[l.ends] = l.Finding
		}
		for _, q := range f.Quarantined {
			bad[q.ends] = q.Why
		}
	}
	return found, bad, nil
}

// update changes the key's file.
func (s *Store) update(change func(f *keyFile)) error {
	defer s.lock()()
	f, err := readJSON[keyFile](s.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) || f.Schema != storeSchema {
		f = keyFile{Schema: storeSchema, Key: s.key}
	}
	change(&f)
	return s.write(s.file(), f)
}

// lockPatience is how long another process is waited for. What it does under
// the lock takes milliseconds; if it does not end, both go on without.
const lockPatience = 10 * time.Second

// lock keeps others from changing files until the func that it returns is
// called.
func (s *Store) lock() (unlock func()) {
	s.mu.Lock()
	_ = os.MkdirAll(s.dir, 0o755)
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil { // so will be writing, which says why
		return s.mu.Unlock
	}
	for began := time.Now(); !tryLock(f) && time.Since(began) < lockPatience; {
		time.Sleep(2 * time.Millisecond)
	}
	return func() {
		_ = f.Close()
		s.mu.Unlock()
	}
}

// saveFinding remembers a verdict.
func (s *Store) saveFinding(e ends, finding Finding) error {
	return s.update(func(f *keyFile) {
		f.Links = slices.DeleteFunc(f.Links, func(k known) bool { return k.ends == e })
		f.Links = append(f.Links, known{e, finding})
	})
}

// Quarantine remembers a link that production found faulty.
func (s *Store) Quarantine(infos []device.Info, p Pair, why string) error {
	e := endsOf(infos, p)
	return s.update(func(f *keyFile) {
		f.Quarantined = slices.DeleteFunc(f.Quarantined, func(q quarantined) bool { return q.ends == e })
		f.Quarantined = append(f.Quarantined, quarantined{e, time.Now().UTC().Truncate(time.Second), why})
	})
}

// endsOf names a pair's ends by what does not change.
func endsOf(infos []device.Info, p Pair) ends {
	uuid := func(id device.ID) string {
		for _, i := range infos {
			if i.ID == id && i.GPU != nil {
				return i.GPU.UUID
			}
		}
		return id.String()
	}
	return ends{uuid(p.From), uuid(p.To)}
}

// Forget removes everything that is remembered: verdicts, quarantine, crashes.
func (s *Store) Forget() (files int, err error) {
	list, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return 0, err
	}
	left, err := filepath.Glob(filepath.Join(s.dir, ".new-*")) // by who was ended while it wrote
	if err != nil {
		return 0, err
	}
	list = append(list, left...)
	var errs []error
	for _, name := range list {
		if strings.HasPrefix(filepath.Base(name), "probing-") {
			if m, err := readJSON[marker](name); err == nil && m.BootID == s.bootID && alive(m.PID) {
				continue
			}
		}
		if err := os.Remove(name); err != nil {
			errs = append(errs, err)
			continue
		}
		files++
	}
	return files, errors.Join(errs...)
}

// write replaces a file at once, and has it on the disk before it returns: the
// machine may go down the next moment.
func (s *Store) write(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
	}
	return nil
}

func readJSON[T any](name string) (v T, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%s: %w: %w", name, errBroken, err)
	}
	return v, nil
}

// errBroken: a file does not hold what was written to it.
var errBroken = errors.New("broken, and left aside (infer doctor --forget removes it)")
