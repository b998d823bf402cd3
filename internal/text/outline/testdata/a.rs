//! Crate.
use std::fmt;

/// An index.
#[derive(Debug, Clone)]
pub struct Index<'a, T> where T: Into<String> {
    name: &'a str,
    t: T,
}

pub struct Unit;

impl<'a, T: fmt::Debug> fmt::Display for Index<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = '{';
        fn helper() {}
        write!(f, "{}", r#"} fn x() {"#)
    }
}

/// Searches.
pub trait Search {
    type Hit;
    fn search(&self, text: &str) -> Vec<Self::Hit>;
    fn first<I>(&self, i: I) where I: Iterator<Item = u8> { }
}

pub(crate) const fn limit() -> usize { 3 }
macro_rules! twice { ($e:expr) => { $e }; }
pub mod inner { pub enum Kind { A(u8), B { c: i32 } } }
