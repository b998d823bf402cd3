package bundle_test

import (
	"testing"

	"cairn/internal/base/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }
