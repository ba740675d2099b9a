// SPDX-License-Identifier: MIT
//! A Rust program with panics that are caught, closures, collections, sorting and threads.
use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::thread;
use std::time::{Duration, Instant};

trait Shape {
    fn area(&self, x: u64) -> u64;
}

struct Square;

impl Shape for Square {
    fn area(&self, x: u64) -> u64 {
        (0..100).fold(x, |sum, i| sum.wrapping_mul(x | 1).wrapping_add(i) / 3)
    }
}

/// What the compiler cannot see through; std::hint::black_box is of Rust 1.66.
fn hide<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

#[inline(never)]
fn descend(shape: &dyn Shape, depth: u32) -> u64 {
    if depth == 0 {
        panic!("the bottom {}", shape.area(7));
    }
    descend(shape, depth - 1).wrapping_add(shape.area(u64::from(depth)))
}

fn work(seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let shape: Box<dyn Shape> = Box::new(Square);
    let mut tree = BTreeMap::new();
    while Instant::now() < end {
        let caught = panic::catch_unwind(|| descend(&Square, hide(12)));
        hide(caught.is_err());
        let mut words: HashMap<String, u64> = HashMap::new();
        for i in 0..100u64 {
            *words.entry(format!("word {}", i % 17)).or_default() += shape.area(i);
        }
        let mut numbers: Vec<u64> = words.values().copied().chain(0..200).collect();
        numbers.sort_by_key(|n| shape.area(*n));
        tree.insert(numbers[0], words);
        hide(&tree);
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    panic::set_hook(Box::new(|_| {}));
    let other = thread::spawn(move || work(seconds));
    work(seconds);
    other.join().unwrap();
}
