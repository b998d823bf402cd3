import Foundation

/// An index.
@MainActor
public final class Index<T: Hashable>: Base, Codable {
    var items: [T] = []
    public init(path: String) throws {
        self.path = "\(path + "}")"
    }

    class func open(_ path: String) -> Index? { nil }

    func search(
        text: String
    ) async throws -> [T] where T: Comparable {
        return items.filter { $0 == text }
    }

    static func == (a: Index, b: Index) -> Bool { true }
    deinit { }
}

protocol Searching {
    associatedtype Hit
    func search() -> Hit
}

extension Index: Searching {
    struct Entry { let a: Int }
}

enum Kind: String { case a, b }
