//! Bloom filters from crates.io as a child process of ../../filters. It reads
//! commands, one a line, and answers each with one line of JSON; serve.go has
//! the protocol, keys.go the keys. Everything that is timed here is timed there
//! in the same way.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use fastbloom::BloomFilter;
use sbbf_rs_safe::Filter as Sbbf;
use xxhash_rust::xxh3::xxh3_64;

const BATCH: usize = 1 << 16;
const GAMMA: u64 = 0x9e3779b97f4a7c15;

/// mix is the finaliser of SplitMix64, a bijection.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

fn probe_key(j: u64, n: u64) -> u64 {
    let r = mix(j ^ 0x5bd1e995 << 32);
    if r & 1 == 1 { mix((r >> 1) % n) } else { mix(n + j) }
}

fn hash(key: u64) -> u64 {
    xxh3_64(&key.to_le_bytes())
}

/// Filter is what is measured of a crate.
trait Filter {
    fn make(keys: usize, bits: f64) -> Self;
    fn insert(&mut self, hash: u64);
    fn contains(&self, hash: u64) -> bool;
    fn bytes(&self) -> usize;
}

impl Filter for Sbbf {
    fn make(keys: usize, bits: f64) -> Self {
        Sbbf::new(1, (keys as f64 * bits) as usize)
    }
    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
    fn bytes(&self) -> usize {
        self.as_bytes().len()
    }
}

impl Filter for BloomFilter {
    fn make(keys: usize, bits: f64) -> Self {
        BloomFilter::with_num_bits((keys as f64 * bits) as usize).expected_items(keys)
    }
    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
    fn bytes(&self) -> usize {
        self.num_bits() / 8
    }
}

struct State {
    n: usize,
    bits: f64,
    keys: Vec<u64>,
    probes: Vec<u64>,
    runs: usize,
}

fn report(ns: u128, count: usize, hits: usize, bytes: usize) -> String {
    format!(r#"{{"ns":{ns},"count":{count},"hits":{hits},"bytes":{bytes}}}"#)
}

/// add makes and fills fresh filters and leaves the last in slot.
fn add<F: Filter>(slot: &mut Option<F>, s: &State) -> String {
    let mut ns = 0;
    for _ in 0..s.runs {
        *slot = None;
        let begin = Instant::now();
        let mut f = F::make(s.n, s.bits);
        for &k in &s.keys {
            f.insert(hash(k));
        }
        ns += begin.elapsed().as_nanos();
        *slot = Some(black_box(f));
    }
    let bytes = slot.as_ref().map_or(0, |f| f.bytes());
    report(ns, s.n * s.runs, 0, bytes)
}

fn select<F: Filter>(f: &F, probes: &[u64], sel: &mut [u32]) -> usize {
    let mut hits = 0;
    for batch in probes.chunks(BATCH) {
        let mut n = 0;
        for (i, &k) in batch.iter().enumerate() {
            sel[n] = i as u32; // without a branch on the answer
            n += f.contains(hash(k)) as usize;
        }
        black_box(&sel);
        hits += n;
    }
    hits
}

fn probe<F: Filter>(slot: &Option<F>, s: &State) -> String {
    let Some(f) = slot else {
        return r#"{"error":"no filter"}"#.into();
    };
    let mut sel = vec![0u32; BATCH + 1];
    select(f, &s.probes, &mut sel); // untimed, as in Go
    let begin = Instant::now();
    let hits = select(f, &s.probes, &mut sel);
    report(begin.elapsed().as_nanos(), s.probes.len(), hits, f.bytes())
}

fn main() {
    let mut s = State { n: 0, bits: 0.0, keys: vec![], probes: vec![], runs: 1 };
    let (mut sbbf, mut fast): (Option<Sbbf>, Option<BloomFilter>) = (None, None);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line of text");
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["names"] => r#"{"names":["sbbf-rs-safe","fastbloom"]}"#.into(),
            ["keys", n, bits, probes, runs] => {
                let (n, probes): (u64, u64) = (n.parse().unwrap(), probes.parse().unwrap());
                (sbbf, fast) = (None, None);
                s = State {
                    n: n as usize,
                    bits: bits.parse().unwrap(),
                    keys: (0..n).map(mix).collect(),
                    probes: (0..probes).map(|j| probe_key(j, n)).collect(),
                    runs: runs.parse().unwrap(),
                };
                "{}".into()
            }
            ["add", "sbbf-rs-safe"] => add(&mut sbbf, &s),
            ["add", "fastbloom"] => add(&mut fast, &s),
            ["probe", "sbbf-rs-safe"] => probe(&sbbf, &s),
            ["probe", "fastbloom"] => probe(&fast, &s),
            _ => r#"{"error":"no such command"}"#.into(),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("standard output");
    }
}
