'use strict';
import x from 'x';

/** Loads a page. */
export default async function load(url, { retry = 3 } = {}) {
  const inner = () => { return `class ${x ? `function y() {}` : ''}`; };
  return inner();
}

export const parse = (text) => text.split(/[{"]/);
const limits = { max: 3, check(n) { return n < this.max; }, reset: function () {} };

class Page extends Base {
  #body = null;
  static of(x) { return new Page(x); }
  get body() { return this.#body; }
  handle = async (event) => {
    await event;
  }
}

Page.prototype.close = function () {
};
module.exports = { load };

Page.prototype.open =
  function openPage(url) {
  };
Page.fn[name] = function () {};
Page.fn["load"] = function () {};
page().view.draw = function () {};
const first = 1,
  // the second
  second = function () {},
  third = (a, b) => a < b;
function outer() {
  var // in a list
    limit = 3,
    step = function (n) { return n + limit; };
  return step;
}
module.exports = class Store extends Page {
  keep(url) {
    return url;
  }
};
class Pool extends Base {
  [kNext] () { return 1 }
  static [Symbol.iterator]() {}
  constructor () {
    this.#setup = (x) => x
    this[kDone] = function () {}
  }
}
const Cache = class WeakCache {
  get (key) {}
}
const connect = win
  ? (a) => {
      return a
    }
  : (b) => {
      return b
    }
const stream = new Stream(
  {
    start () { return 1 },
    async pull (n) {}
  }
)
