// Package archtest holds the rules of who may import whom, as a test.
package archtest
