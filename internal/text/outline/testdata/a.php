<html><?php
namespace App\Store;

/** An index. */
#[Attribute]
abstract class Index extends Base implements Countable
{
    use Loggable;
    private $path = 'class X {';

    public function __construct(private string $p) { $f = function ($a) { return $a; }; }
    # Searches.
    public static function &search(string $text, int $n = 5): ?array
    {
        $s = <<<EOT
function no() {
EOT;
        return [];
    }
    abstract protected function close(): void;
}

trait Loggable { function log() {} }
function helper() { return new class { function inner() {} }; }
?><b>class Y {</b>
