// Package archtest tests which packages each package may import.
package archtest
