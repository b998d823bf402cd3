namespace store {

template <typename T, int N = (1 > 0)>
class EXPORT Index final : public Base<T> {
 public:
  explicit Index(int n) : n_{n}, m_(0) { }
  ~Index() override;
  bool operator==(const Index& o) const { return true; }
  static constexpr auto size() -> std::size_t { return 0; }
 private:
  struct Entry { int a; };
  using Key = int;
  int n_{0};
};

template <typename T>
Index<T>::~Index() {}

std::vector<int> Index::search(const char* s) const noexcept {
  auto f = [&](int a) { return a; };
  return R"x(} class Y {)x";
}

}  // namespace store

extern "C" {
int entry(void) { return 0; }
}

TEST(Index, Searches) {
}

class Db {
 public:
  explicit Db(int n);
  Db(const Db&) = delete;
  virtual ~Db();
  /// Puts it.
  virtual bool Put(const std::string& key) = 0;
  int size() const;
  void (*run)(int);
};
BENCHMARK(Search)->Range(1, 8);
