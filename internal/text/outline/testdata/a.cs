using System;

namespace Store
{
    /// <summary>An index.</summary>
    [Serializable]
    public sealed class Index<T> : Base, IIndex where T : struct
    {
        private string path = @"c:\";
        public int Count { get; private set; } = 0;
        public T this[int i] { get { return items[i]; } }

        public Index(int n) : base(n) { }

        [Test]
        public async Task<List<T>> SearchAsync<R>(string text = "}")
        {
            void Local() { }
            return null;
        }

        public int Size() => items.Length;
        public static bool operator ==(Index<T> a, Index<T> b) { return true; }
        public enum Kind { A, B }
    }

    public interface IIndex { void Close(); }
    public record Hit(string Path, double Score);
    public delegate void Handler(object sender);
}
namespace Store
{
    public readonly record struct Point(int X, int Y);
    public class Empty : Base;

    class Query
    {
        /// <summary>The name.</summary>
        public required string Name { get; init; } = "";
        public int Count => items.Select(x => x).Count();
        protected override (bool, int) Try(int n) { return (true, n); }
        public static string Text(int n) => n switch
        {
            1 => "one",
            _ => "more",
        };
        public static implicit operator Func<List<int>, Task<bool>>(Query q) => null;
        public int[] All => new[] { 1 };
        int field = 1;
    }
}
