package watch

import "golang.org/x/sys/unix"

// maxFolders is how many folders are watched at most. A watch costs the kernel
// about a kilobyte, and no file descriptor.
const maxFolders = 100_000

// remote names the type of the file system that holds dir if the kernel does
// not learn of everything that happens there: it is another machine's, or that
// of a process. "" is any other.
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
		return "9p" // how a Windows folder is seen from its Linux subsystem
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return "a network"
	}
	return ""
}
