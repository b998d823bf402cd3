const std = @import("std");

/// A point.
pub const Point = struct {
    x: i32,

    /// The distance.
    pub fn distance(self: Point) i32 {
        return self.x;
    }
};

pub const Failure = error{ Missing, Late };
extern "c" fn close(fd: c_int) c_int;

pub fn main() !void {
    if (true) {
        return;
    }
}

test "distance" {
    try std.testing.expect(true);
}
