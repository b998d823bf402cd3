// Package conformance runs the official conformance suite of the Model Context Protocol
// against cairn's HTTP server, in a test. run.sh installs the suite and starts the test.
package conformance
