// Package offheap allocates memory outside of Go's heap, for large data that lives long. Go's
// collector reserves as much memory again as the live heap has.
//
// Such memory must hold no Go pointers. The object that owns it frees it, usually with
// runtime.AddCleanup, and code that uses the memory must keep that object alive.
package offheap

// HugePage is the size of a huge page, which large memory consists of if the operating
// system supports them.
const HugePage = 2 << 20
