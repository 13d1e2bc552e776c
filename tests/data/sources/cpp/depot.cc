namespace example { namespace store {

/// Stores things.
/// In a depot.
template <typename T>
class Depot : public Base {
 public:
  Depot(int count) : count_(count) { prepare(); }
  ~Depot();
  virtual int weigh(int item) const override {
    return apply([&](int each) { return scale(each); }, item);
  }
  bool operator==(const Depot& other) const { return true; }

 private:
  int count_ = 0;
};

/** \brief Frees it. */
template <typename T>
Depot<T>::~Depot() { release(); }

static int* helper(int x) noexcept { return ns::find<int>(x); }

}}

void example::store::Outer::Inner::run(const std::string& text) { text.size(); }

extern "C" {
void c_function(void) { puts("x"); }
}
