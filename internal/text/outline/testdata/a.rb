# Stores things.
module Store
  class Index < Base
    attr_reader :path

    # Searches.
    def search(text, limit: 5)
      text.each do |t|
        puts <<~DOC
          def not_here
        DOC
      end
    end

    def self.open(path) = new(path)

    class << self
      def close; end
    end

    private def empty?
      true
    end
  end
end
class ::Top < Base
  def add(meth)
    @db = []
    if meth
      @db.eval(<<END, __FILE__)
def inner
end
END
    end
  end
  def @db.schema(x)
    @db <<1
  end
end
=begin
class Comment
=end
