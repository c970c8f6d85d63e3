package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"infer/runtime/device"
)

// Key is all that a verdict depends on beside the link: any difference, and
// links are probed again.
type Key struct {
	GPUs    []GPUKey `json:"gpus"`
	Driver  string   `json:"driver"`
	Cmdline string   `json:"kernel_command_line"`
	BIOS    string   `json:"bios"`
	BootID  string   `json:"boot_id"`
	// Machine says which simulated machine it is; "" for real hardware.
	Machine string `json:"simulated_machine,omitempty"`
}

// GPUKey names a GPU and its place.
type GPUKey struct {
	UUID string `json:"uuid"`
	PCI  string `json:"pci"`
}

// KeyOf the GPUs among infos on a host whose root folder is root.
func KeyOf(infos []device.Info, root fs.FS, machine string) Key {
	k := Key{
		Cmdline: readLine(root, "proc/cmdline"), BIOS: readLine(root, "sys/class/dmi/id/bios_version"),
		BootID: readLine(root, "proc/sys/kernel/random/boot_id"), Machine: machine,
	}
	for _, i := range infos {
		if i.GPU != nil {
			k.GPUs = append(k.GPUs, GPUKey{i.GPU.UUID, i.GPU.PCI})
			k.Driver = i.GPU.DriverVersion
		}
	}
	slices.SortFunc(k.GPUs, func(a, b GPUKey) int { return strings.Compare(a.UUID, b.UUID) })
	return k
}

// String is the key's hash, for a file's name.
func (k Key) String() string {
	text, err := json.Marshal(k)
	if err != nil {
		panic(err) // strings only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// readLine is a small file's text without its end; "" when it cannot be read.
func readLine(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
