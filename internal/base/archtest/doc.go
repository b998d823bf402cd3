// Package archtest tests which packages each package may import, how many lines a room may
// have, and the English of the comments.
package archtest
