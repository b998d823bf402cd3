package watch

import "golang.org/x/sys/unix"

// maxFolders bounds the number of watched folders. A watch takes about a kilobyte of kernel
// memory and no file descriptor.
const maxFolders = 100_000

// remote returns the type of the file system of dir if the kernel does not see all its
// changes, because another machine or a process serves it; "" for others.
func remote(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	// The values are those of statfs(2).
	switch uint32(s.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "smb"
	case unix.V9FS_MAGIC:
		return "9p" // a Windows folder in the Windows Subsystem for Linux
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return "a network"
	}
	return ""
}
